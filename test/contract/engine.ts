/**
 * What every engine with a server of its own promises: patience while the server loads, one request per run, errors in
 * plain words without the key, and no file under a final name unless it is whole.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type EngineDocument, jobOf, openEngine, savedFile } from '../support/model-servers/engine.js'
import type { ModelServer } from '../support/model-servers/http.js'
import { pngOf } from '../support/model-servers/pictures.js'
import { until } from '../support/until.js'

export interface EngineSubject {
  readonly name: string
  createServer(): Promise<ModelServer>
  document(url: string): EngineDocument
  /** Method and path of the request that starts the work, and of the one that carries the result. */
  readonly creates: string
  readonly results: string
  /** The same for a run with references. Undefined: an own test, because it does not take two of them. */
  readonly createsWithReferences?: string
  /** Whether it finds its job again after the answer to its request was lost. */
  readonly findsLostJobs?: boolean
  /** Time for which the request is kept open after an abort, in case its answer names a job to remove. Default: 0. */
  readonly keepsRequestMs?: number
  /** Whether the server takes the engine's key. */
  readonly hasKey: boolean
}

const KEY = 'sk-test-9f8e7d6c5b4a'

export function testEngine(subject: EngineSubject): void {
  async function open() {
    const server = await subject.createServer()
    const { engine, ...rest } = subject.document(server.url)
    const document = { ...rest, engine: { ...engine, ...(subject.hasKey && { key_env: 'TEST_KEY' }) } }
    const job = jobOf(rest.kind === 'video' ? { kind: 'video' } : {})
    const creates = () => server.count(subject.creates)
    return { server, job, creates, ...openEngine(document, { TEST_KEY: KEY }) }
  }
  const visible = (folder: string) => readdirSync(folder).filter((name) => !name.startsWith('.'))

  describe(`the engine ${subject.name}`, () => {
    test('renders a run into one file, with one request', async () => {
      const { render, job, clock, creates } = await open()
      const files = await clock.runUntil(render(job))
      expect(files).toHaveLength(1)
      expect(visible(job.folder)).toEqual([files[0]?.name])
      expect(files[0]?.contentType).toMatch(new RegExp(`^${job.kind}/`))
      expect(creates()).toBe(1)
    })

    test('reads a server that compresses every response, including errors', async () => {
      const { render, job, clock, server } = await open()
      server.compress()
      expect(await clock.runUntil(render(job))).toHaveLength(1)
      expect(server.requests.every(({ headers }) => headers['accept-encoding'] === 'identity')).toBe(true)
      const other = await open()
      other.server.compress()
      const body = { detail: [{ loc: ['body', 'x'], msg: 'is odd' }] }
      other.server.fault(subject.creates, { status: 400, body })
      await expect(other.clock.runUntil(other.render(other.job))).rejects.toThrow('body.x: is odd')
    })

    test.runIf(subject.createsWithReferences)('sends references in their order', async () => {
      const { render, job, clock, server } = await open()
      const pictures = [pngOf(8, 8, 'first'), pngOf(8, 8, 'second')]
      const references = pictures.map(savedFile)
      await clock.runUntil(render({ ...job, references }))
      const sent = server.requests
        .filter(({ method, path }) => `${method} ${path}`.startsWith(subject.createsWithReferences ?? ''))
        .map(({ body }) => body)
      const whole = Buffer.concat(sent)
      const offsets = pictures.map((bytes) =>
        Math.max(whole.indexOf(bytes), whole.indexOf(bytes.toString('base64'))),
      )
      expect(offsets[0]).toBeGreaterThan(0)
      expect(offsets[1]).toBeGreaterThan(offsets[0] ?? 0)
    })

    test('sends nothing when a reference is missing', async () => {
      const { render, job, server } = await open()
      await expect(render({ ...job, references: [undefined] })).rejects.toThrow(
        'Reference image 1 could not be read.',
      )
      expect(server.requests.filter(({ method }) => method !== 'GET')).toEqual([])
    })

    test('waits for a server that refuses connections, then answers 503, then is ready', async () => {
      const { render, job, clock, server, creates } = await open()
      await server.close()
      server.fault(subject.creates, { status: 503, body: { error: { message: 'loading' } } }, 2)
      const rendering = render(job)
      await until('the engine waits', () => clock.sleepers > 0)
      await server.reopen()
      await clock.runUntil(rendering)
      expect(creates()).toBe(3)
    })

    test('waits as long as a 429 asks for', async () => {
      const { render, job, clock, server, creates } = await open()
      server.fault(subject.creates, { status: 429, headers: { 'retry-after': '40' } })
      const startedAt = clock.monotonic()
      await clock.runUntil(render(job))
      expect(clock.monotonic() - startedAt).toBeGreaterThanOrEqual(40_000)
      expect(creates()).toBe(2)
    })

    test('fails at once when the account has no credit left', async () => {
      const { render, job, clock, server, creates } = await open()
      const error = { message: 'You exceeded your current quota', code: 'insufficient_quota' }
      server.fault(subject.creates, { status: 429, body: { error } }, 1_000)
      await expect(clock.runUntil(render(job))).rejects.toThrow(
        /^The model's server answered 429: You exceeded your current quota$/,
      )
      expect(creates()).toBe(1)
    })

    test('fails with the error of the server, and asks it once', async () => {
      const { render, job, clock, server, creates } = await open()
      server.fault(subject.creates, { status: 500, body: { error: { message: 'CUDA out of memory' } } })
      await expect(clock.runUntil(render(job))).rejects.toThrow(
        "The model's server answered 500: CUDA out of memory",
      )
      expect(creates()).toBe(1)
    })

    test('removes keys, addresses and control characters from an error, and shortens it', async () => {
      const { render, job, clock, server } = await open()
      const hostile = `\u001b[2J\u202e${KEY} at ${server.url}/v1 of 127.0.0.1 ${'x'.repeat(50_000)}`
      server.fault(subject.creates, { status: 400, body: { error: { message: hostile } } })
      const error = await clock.runUntil(render(job).catch((reason: Error) => reason))
      const { message } = error as Error
      expect(message).toContain("The model's server answered 400: [2J")
      if (subject.hasKey) expect(message).not.toContain(KEY)
      expect(message).not.toContain('127.0.0.1')
      expect(message).not.toMatch(/[\u001b\u202e]/)
      expect(message.length).toBeLessThan(1_200)
    })

    test('does not repeat a request that the server may have accepted', async () => {
      const { render, job, clock, server, creates } = await open()
      server.fault(subject.creates, 'lose')
      const rendering = clock.runUntil(render(job))
      if (subject.findsLostJobs) expect(await rendering).toHaveLength(1)
      else await expect(rendering).rejects.toThrow(/connection/)
      expect(creates()).toBe(1)
    })

    test('follows no redirect of a request that starts work', async () => {
      const { render, job, clock, server } = await open()
      const other = await subject.createServer()
      server.fault(subject.creates, { status: 307, headers: { location: `${other.url}/v1` } })
      await expect(clock.runUntil(render(job))).rejects.toThrow('redirected the request (307)')
      expect(other.requests).toEqual([])
    })

    test('an abort ends the request, with its reason', async () => {
      const { render, job, clock, server } = await open()
      server.fault(subject.creates, 'hang')
      const controller = new AbortController()
      const rendering = render({ ...job, signal: controller.signal })
      await until('the request arrives', () => server.count(subject.creates) === 1)
      const reason = new Error('stopped by the test')
      controller.abort(reason)
      await clock.advance(subject.keepsRequestMs ?? 0)
      await expect(clock.runUntil(rendering)).rejects.toBe(reason)
      await until('the client leaves', () => server.abandoned === 1)
      expect(visible(job.folder)).toEqual([])
    })

    test('an abort ends the wait for a server that does not answer', async () => {
      const { render, job, clock, server } = await open()
      await server.close()
      const controller = new AbortController()
      const rendering = render({ ...job, signal: controller.signal })
      await until('the engine waits', () => clock.sleepers > 0)
      controller.abort(new Error('stopped by the test'))
      await expect(rendering).rejects.toThrow('stopped by the test')
    })

    test('a result whose download breaks off every time fails the run, and publishes nothing', async () => {
      const { render, job, clock, server } = await open()
      server.fault(subject.results, { bytes: 60, ending: 'reset' }, 10)
      await expect(clock.runUntil(render(job))).rejects.toThrow(
        "The response of the model's server broke off",
      )
      expect(visible(job.folder)).toEqual([])
    })

    test('a server that disappears in the middle of a result fails the run', async () => {
      const { render, job, clock, server } = await open()
      server.fault(subject.results, { bytes: 60, ending: 'pause' }, 10)
      const rendering = render(job)
      await clock.runUntil(until('the request arrives', () => server.count(subject.results) > 0))
      await clock.runUntil(Promise.race([rendering.catch(() => {}), clock.advance(61_000)]))
      await server.close()
      await expect(clock.runUntil(rendering)).rejects.toThrow(/model's server/)
      expect(visible(job.folder)).toEqual([])
    })

    test('sends only the API key of its server', async () => {
      const { render, job, clock, server } = await open()
      await clock.runUntil(render(job))
      const headers = server.requests.map(({ headers }) => headers.authorization)
      expect(new Set(headers)).toEqual(new Set([subject.hasKey ? `Bearer ${KEY}` : undefined]))
    })
  })
}

/** The bytes of the only file of a job. */
export const resultOf = (folder: string): Buffer => {
  const [name = ''] = readdirSync(folder).filter((each) => !each.startsWith('.'))
  return readFileSync(join(folder, name))
}
