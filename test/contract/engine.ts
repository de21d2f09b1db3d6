/**
 * What every engine with a server of its own promises: patience while the server loads, one request per run, errors in
 * plain words without the key, and no file under a final name unless it is whole.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { RenderJob } from '../../src/service/engines/engine.js'
import { type ModelServer, type ServerFault, until } from '../support/index.js'
import { type EngineDocument, jobOf, openEngine, savedFile } from '../support/model-servers/engine.js'
import { pngOf } from '../support/model-servers/pictures.js'

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
    const { clock, render } = openEngine(document, { TEST_KEY: KEY })
    const job = jobOf(rest.kind === 'video' ? { kind: 'video' } : {})
    const start = (more: Partial<RenderJob> = {}) => render({ ...job, ...more })
    const run = async (more?: Partial<RenderJob>) => await clock.runUntil(start(more))
    const creates = () => server.count(subject.creates)
    const fault = (answer: ServerFault, times?: number) => server.fault(subject.creates, answer, times)
    const files = () => readdirSync(job.folder).filter((name) => !name.startsWith('.'))
    return { server, clock, job, start, run, creates, fault, files }
  }

  describe(`the engine ${subject.name}`, () => {
    test('renders a run into one file, with one request and only the key of its server', async () => {
      const { run, job, creates, files, server } = await open()
      const [file, ...others] = await run()
      expect([others, files()]).toEqual([[], [file?.name]])
      expect(file?.contentType).toMatch(new RegExp(`^${job.kind}/`))
      expect(creates()).toBe(1)
      const keys = server.requests.map(({ headers }) => headers.authorization)
      expect(new Set(keys)).toEqual(new Set([subject.hasKey ? `Bearer ${KEY}` : undefined]))
    })

    test('reads a server that compresses every response, including errors', async () => {
      const { run, server, fault } = await open()
      server.compress()
      expect(await run()).toHaveLength(1)
      expect(server.requests.every(({ headers }) => headers['accept-encoding'] === 'identity')).toBe(true)
      fault({ status: 400, body: { detail: [{ loc: ['body', 'x'], msg: 'is odd' }] } })
      await expect(run({ run: { id: 'run_8', model: 'm' } })).rejects.toThrow('body.x: is odd')
    })

    test.runIf(subject.createsWithReferences)('sends references in their order', async () => {
      const { run, server } = await open()
      const pictures = [pngOf(8, 8, 'first'), pngOf(8, 8, 'second')]
      await run({ references: pictures.map(savedFile) })
      const sent = server.requests
        .filter(({ method, path }) => `${method} ${path}`.startsWith(subject.createsWithReferences ?? ''))
        .map(({ body }) => body)
      const whole = Buffer.concat(sent)
      const [first = -1, second = -1] = pictures.map((bytes) =>
        Math.max(whole.indexOf(bytes), whole.indexOf(bytes.toString('base64'))),
      )
      expect(first).toBeGreaterThan(0)
      expect(second).toBeGreaterThan(first)
    })

    test('sends nothing when a reference is missing', async () => {
      const { run, server } = await open()
      await expect(run({ references: [undefined] })).rejects.toThrow('Reference image 1 could not be read.')
      expect(server.requests.filter(({ method }) => method !== 'GET')).toEqual([])
    })

    test('waits for a server that refuses connections, then answers 503, then is ready', async () => {
      const { start, clock, server, creates, fault } = await open()
      await server.close()
      fault({ status: 503, body: { error: { message: 'loading' } } }, 2)
      const rendering = start()
      await until('the engine waits', () => clock.sleepers > 0)
      await server.reopen()
      await clock.runUntil(rendering)
      expect(creates()).toBe(3)
    })

    test('waits as long as a 429 asks for', async () => {
      const { run, clock, creates, fault } = await open()
      fault({ status: 429, headers: { 'retry-after': '40' } })
      const startedAt = clock.monotonic()
      await run()
      expect(clock.monotonic() - startedAt).toBeGreaterThanOrEqual(40_000)
      expect(creates()).toBe(2)
    })

    const NO_CREDIT = { message: 'You exceeded your current quota', code: 'insufficient_quota' }
    test.each([
      [500, { message: 'CUDA out of memory' }],
      [429, NO_CREDIT],
    ])('fails at once with the words of a final answer: %i %o', async (status, error) => {
      const { run, creates, fault } = await open()
      fault({ status, body: { error } }, 1_000)
      await expect(run()).rejects.toThrow(
        new RegExp(`^The model's server answered ${status}: ${error.message}$`),
      )
      expect(creates()).toBe(1)
    })

    test('removes keys, addresses and control characters from an error, and shortens it', async () => {
      const { run, server, fault } = await open()
      const hostile = `\u001b[2J\u202e${KEY} at ${server.url}/v1 of 127.0.0.1 ${'x'.repeat(50_000)}`
      fault({ status: 400, body: { error: { message: hostile } } })
      const { message } = (await run().catch((reason: unknown) => reason)) as Error
      expect(message).toContain("The model's server answered 400: [2J")
      if (subject.hasKey) expect(message).not.toContain(KEY)
      expect(message).not.toContain('127.0.0.1')
      expect(message).not.toMatch(/[\u001b\u202e]/)
      expect(message.length).toBeLessThan(1_200)
    })

    test('does not repeat a request that the server may have accepted', async () => {
      const { run, creates, fault } = await open()
      fault('lose')
      if (subject.findsLostJobs) expect(await run()).toHaveLength(1)
      else await expect(run()).rejects.toThrow(/connection/)
      expect(creates()).toBe(1)
    })

    test('follows no redirect of a request that starts work', async () => {
      const { run, fault } = await open()
      const other = await subject.createServer()
      fault({ status: 307, headers: { location: `${other.url}/v1` } })
      await expect(run()).rejects.toThrow('redirected the request (307)')
      expect(other.requests).toEqual([])
    })

    const STOPPED = new Error('stopped by the test')
    test('an abort ends the request, with its reason', async () => {
      const { start, clock, server, creates, fault, files } = await open()
      fault('hang')
      const controller = new AbortController()
      const rendering = start({ signal: controller.signal })
      await until('the request arrives', () => creates() === 1)
      controller.abort(STOPPED)
      await clock.advance(subject.keepsRequestMs ?? 0)
      await expect(clock.runUntil(rendering)).rejects.toBe(STOPPED)
      await until('the client leaves', () => server.abandoned === 1)
      expect(files()).toEqual([])
    })

    test('an abort ends the wait for a server that does not answer', async () => {
      const { start, clock, server } = await open()
      await server.close()
      const controller = new AbortController()
      const rendering = start({ signal: controller.signal })
      await until('the engine waits', () => clock.sleepers > 0)
      controller.abort(STOPPED)
      await expect(rendering).rejects.toBe(STOPPED)
    })

    test('a result whose download breaks off every time fails the run, and publishes nothing', async () => {
      const { run, server, files } = await open()
      server.fault(subject.results, { bytes: 60, ending: 'reset' }, 100)
      await expect(run()).rejects.toThrow("The response of the model's server broke off")
      expect(files()).toEqual([])
    })
  })
}

/** The bytes of the only file of a job. */
export const resultOf = (folder: string): Buffer => {
  const [name = ''] = readdirSync(folder).filter((each) => !each.startsWith('.'))
  return readFileSync(join(folder, name))
}
