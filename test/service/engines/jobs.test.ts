/** The life of a job at a provider that costs money: it is paid for once, whatever happens. */
import { readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createNetwork } from '../../../src/host/undici.js'
import {
  JobDetached,
  OutcomeUnknown,
  type RenderJob,
  RunCanceled,
  type StoredJob,
} from '../../../src/service/engines/engine.js'
import { createUpstream } from '../../../src/service/engines/upstream/index.js'
import { createJobEngine } from '../../../src/service/engines/upstream/jobs.js'
import { createOnceEngine } from '../../../src/service/engines/upstream/outcome.js'
import { publishOutputs } from '../../../src/service/engines/upstream/outputs.js'
import { whenOver } from '../../support/after-file.js'
import { createManualClock } from '../../support/clock.js'
import { jobOf } from '../../support/model-servers/engine.js'
import { createGate, type ServerFault } from '../../support/model-servers/http.js'
import {
  createProvider,
  createProviderServer,
  type ProviderOptions,
} from '../../support/model-servers/provider.js'
import { temporaryFolder } from '../../support/temporary-folder.js'
import { until } from '../../support/until.js'

interface OpenOptions extends ProviderOptions {
  readonly hasCost?: boolean
}

async function open({ hasCost = true, ...options }: OpenOptions = {}) {
  const server = await createProvider(options)
  const clock = createManualClock()
  const network = createNetwork({ env: {}, clock })
  const upstream = createUpstream({
    url: new URL(server.url),
    hasCost,
    parts: { fetch: network.fetch, clock },
  })
  whenOver(async () => {
    await upstream.close()
    await network.close()
  })
  const engine = createJobEngine(createProviderServer(upstream), clock)
  /** What is stored with the run, in order; the last one holds. */
  const stored: StoredJob[] = []
  const save = async (job: StoredJob) => void stored.push(job)
  /** As another worker would, with what was stored. */
  const render = (more: Partial<RenderJob> = {}) => {
    const rendering = engine.render(jobOf({ stored: stored.at(-1), save, ...more }))
    rendering.catch(() => {})
    return rendering
  }
  /** Renders until the job was polled twice. */
  const polled = async (more: Partial<RenderJob> = {}) => {
    const stop = new AbortController()
    const rendering = render({ signal: stop.signal, ...more })
    await clock.runUntil(until('a poll', () => (server.jobs[0]?.polls ?? 0) > 1))
    return { stop, rendering }
  }
  const cancel = (job = stored.at(-1)) => engine.cancel({ id: 'run_7', model: 'm', stored: job })
  const creates = () => server.count('POST')
  return { server, clock, upstream, engine, stored, render, polled, cancel, creates }
}

test('the intent is stored before the create, and the job before its first poll', async () => {
  const { server, clock, stored, render } = await open()
  const counts: [creates: number, polls: number][] = []
  const save = async (job: StoredJob) => {
    counts.push([server.count('POST'), server.count('GET')])
    stored.push(job)
  }
  expect(await clock.runUntil(render({ save }))).toHaveLength(1)
  expect(counts).toEqual([
    [0, 0],
    [1, 0],
    [1, 3],
  ])
  const place = { type: 'provider', origin: server.url, costs: true }
  expect(stored[0]?.intent).toMatchObject({ endpoint: 'model', sentAtMs: clock.now() - 2_000 - 1_000, place })
  expect(stored[2]).toEqual({ ...stored[1], end: 'done' })
  expect(stored[1]).toEqual({
    handle: {
      place,
      id: 'job_1',
      urls: { get: `${server.url}/requests/job_1`, cancel: `${server.url}/requests/job_1/cancel` },
    },
  })
})

describe('a create without a clear answer', () => {
  test.each<[name: string, fault: ServerFault]>([
    ['502', { status: 502, body: '<html>' }],
    ['503', { status: 503, body: { error: 'no healthy upstream' } }],
    ['404 of a proxy', { status: 404, body: '404 page not found' }],
    ['200 with a page', { status: 200, body: '<html>' }],
    ['200 without an id', { status: 200, body: {} }],
    ['a broken connection', 'reset'],
    ['a lost answer', 'lose'],
    ['an answer that breaks off', { bytes: 3, ending: 'reset' }],
  ])('is never sent again: %s', async (_, fault) => {
    const { server, clock, render, creates } = await open()
    server.fault('POST', fault)
    await expect(clock.runUntil(render())).rejects.toBeInstanceOf(OutcomeUnknown)
    expect(creates()).toBe(1)
  })
})

describe('a create that was certainly refused', () => {
  test.each<[name: string, headers: Record<string, string>, waitMs: number]>([
    ['with Retry-After', { 'retry-after': '40' }, 40_000],
    ['without Retry-After', {}, 1_000],
  ])('is sent again after a 429 %s', async (_, headers, waitMs) => {
    const { server, clock, stored, render, creates } = await open()
    server.fault('POST', { status: 429, headers, body: { detail: 'throttled' } })
    const startedAt = clock.monotonic()
    expect(await clock.runUntil(render())).toHaveLength(1)
    expect([creates(), server.jobs.length]).toEqual([2, 1])
    expect(clock.monotonic() - startedAt).toBeGreaterThanOrEqual(waitMs)
    expect(stored.map((each) => Object.keys(each)[0])).toEqual([
      'intent',
      undefined,
      'intent',
      'handle',
      'handle',
    ])
  })

  test("fails with the server's own answer", async () => {
    const { server, clock, stored, render, creates } = await open()
    server.fault('POST', { status: 422, body: { detail: [{ loc: ['body', 'prompt'], msg: 'too long' }] } })
    await expect(clock.runUntil(render())).rejects.toThrow('answered 422: body.prompt: too long')
    expect([creates(), server.count('GET'), server.count('PUT')]).toEqual([1, 0, 0])
    // The intent is taken back: the run can be refunded.
    expect(stored.at(-1)).toEqual({})
  })
})

describe('another worker', () => {
  test('follows a stored job, and starts none', async () => {
    const { server, clock, stored, render, creates } = await open()
    const { after, open: answer } = createGate()
    server.fault('GET /requests/', { after })
    const stop = new AbortController()
    const first = render({ signal: stop.signal })
    await clock.runUntil(until('a poll', () => server.count('GET /requests/') > 0))
    stop.abort(new JobDetached('the service stops'))
    answer()
    await expect(clock.runUntil(first)).rejects.toThrow('the service stops')
    expect(server.canceled).toEqual([])
    expect(await clock.runUntil(render())).toHaveLength(1)
    expect([creates(), stored.at(-1)?.handle?.id]).toEqual([1, 'job_1'])
  })

  test('fails an intent that the provider does not know', async () => {
    const { clock, render, creates } = await open()
    const intent = { id: 'i', sentAtMs: clock.now(), endpoint: 'model' }
    await expect(clock.runUntil(render({ stored: { intent } }))).rejects.toBeInstanceOf(OutcomeUnknown)
    expect(creates()).toBe(0)
  })

  test('gets the id that arrives after the stop', async () => {
    const { server, clock, stored, render } = await open()
    const { after, open: answer } = createGate()
    server.fault('POST', { after })
    const stop = new AbortController()
    const first = render({ signal: stop.signal })
    await until('the request arrives', () => server.count('POST') === 1)
    stop.abort(new JobDetached('the service stops'))
    answer()
    await expect(clock.runUntil(first)).rejects.toThrow('the service stops')
    expect([stored.at(-1)?.handle?.id, server.canceled]).toEqual(['job_1', []])
  })
})

describe('a job', () => {
  test.each<[name: string, fault: ServerFault, times: number]>([
    ['404 pages of a proxy', { status: 404, body: '<html>404</html>' }, 40],
    ['empty 404 answers', { status: 404 }, 40],
    ['404 answers of the server, three in a row', { status: 404, body: { status: 'NOT_FOUND' } }, 3],
    ['502 pages', { status: 502, body: '<html>' }, 40],
    ['200 pages of many values', { status: 200, body: `<html>${','.repeat(20_000)}` }, 40],
    ['states that nobody knows', { body: { status: 'PAUSED_FOR_LUNCH' } }, 40],
  ])('survives %s', async (_, fault, times) => {
    const { server, clock, render, creates } = await open()
    server.fault('GET /requests/', fault, times)
    expect(await clock.runUntil(render())).toHaveLength(1)
    expect([creates(), server.canceled]).toEqual([1, []])
  })

  test.each([
    ['fails after 4', false, 4, 'no longer knows this job'],
    ['has an unknown outcome after three minutes of', true, 100, 'result is unknown'],
  ])('%s answers in a row that it is not known, with a cost: %s', async (_, hasCost, times, message) => {
    const { server, clock, render, creates } = await open({ hasCost })
    server.fault('GET /requests/', { status: 404, body: { status: 'NOT_FOUND' } }, times)
    await expect(clock.runUntil(render())).rejects.toThrow(message)
    expect([creates(), server.canceled]).toEqual([1, []])
    expect(server.count('GET /requests/')).toBeGreaterThanOrEqual(4)
  })

  test('reports its place among 12,000', async () => {
    const { clock, render } = await open({ queued: 18_000 })
    const places: number[] = []
    await clock.runUntil(render({ onPosition: (position) => void places.push(position) }))
    expect(places).toEqual([12_000, 6_000, 0])
  })

  test('fails when the provider reports it as aborted', async () => {
    const { server, clock, render } = await open({ states: ['IN_QUEUE', 'aborted'] })
    await expect(clock.runUntil(render())).rejects.toThrow('The job was aborted.')
    expect(server.canceled).toEqual([])
  })

  test('may hide its failure behind COMPLETED', async () => {
    const { clock, render } = await open({ error: 'NSFW content detected' })
    await expect(clock.runUntil(render())).rejects.toThrow('NSFW content detected')
  })

  test('whose link has expired has a fresh one after another poll', async () => {
    const { server, clock, render } = await open()
    server.fault('GET /files/', { status: 403, body: 'expired' })
    expect(await clock.runUntil(render())).toHaveLength(1)
    expect(server.count('GET /files/job_1/2')).toBe(1)
  })

  test.each([
    [401, 4, { detail: 'No user found' }],
    [402, 4, { detail: 'Exhausted balance' }],
    [403, 40, '<html>Blocked by the firewall</html>'],
  ])('survives polls that answer %i, %i times in a row', async (status, times, body) => {
    const { server, clock, render, creates } = await open()
    server.fault('GET /requests/', { status, body }, times)
    expect(await clock.runUntil(render())).toHaveLength(1)
    expect([creates(), server.canceled]).toEqual([1, []])
  })

  test.each([401, 402, 403])(
    'is not canceled when its provider answers polls with %i for minutes, and its outcome is unknown',
    async (status) => {
      const { server, clock, render, creates } = await open()
      server.fault('GET /requests/', { status, body: { detail: 'No user found' } }, 1_000)
      const startedAtMs = clock.monotonic()
      const error = await clock.runUntil(render()).catch((thrown: unknown) => thrown)
      expect(error).toBeInstanceOf(OutcomeUnknown)
      expect(error).toMatchObject({ message: expect.stringContaining('Its job is job_1.') })
      expect(clock.monotonic() - startedAtMs).toBeGreaterThan(120_000)
      expect([creates(), server.canceled]).toEqual([1, []])
    },
  )

  test('with a result that is not an image is fetched once, and leaves no file', async () => {
    const { server, clock, stored, render } = await open()
    const folder = temporaryFolder()
    server.fault('GET /files/', { body: '<svg xmlns="http://www.w3.org/2000/svg"/>' }, 100)
    await expect(clock.runUntil(render({ folder }))).rejects.toThrow('which is not an image')
    expect([server.count('GET /files/'), readdirSync(folder)]).toEqual([1, []])
    expect(stored.at(-1)).toMatchObject({ handle: { id: 'job_1' }, end: 'over' })
  })

  test('without a usable result removes nothing behind a link in the place of its folder', async () => {
    const { server, clock, render } = await open()
    const [others, folder] = [temporaryFolder(), join(temporaryFolder(), 'link')]
    writeFileSync(join(others, '.profile'), 'of others')
    symlinkSync(others, folder)
    server.fault('GET /files/', { body: '<svg xmlns="http://www.w3.org/2000/svg"/>' }, 100)
    await expect(clock.runUntil(render({ folder }))).rejects.toThrow('which is not an image')
    expect(readdirSync(others)).toContain('.profile')
  })

  test('whose model has another server now gets no request, and its outcome is unknown', async () => {
    const { server, clock, cancel, render } = await open()
    for (const change of [{ type: 'fal' }, { origin: 'https://other.example.com' }]) {
      const place = { type: 'provider', origin: server.url, costs: true, ...change }
      const stored = { handle: { id: 'job_1', place } }
      await expect(clock.runUntil(render({ stored }))).rejects.toBeInstanceOf(OutcomeUnknown)
      expect(await cancel(stored)).toBe('not canceled')
      const intent = { id: 'i', sentAtMs: 1, endpoint: 'model', place }
      expect(await cancel({ intent })).toBe('not canceled')
    }
    expect(server.requests).toEqual([])
  })

  test.each([
    ['for a time', 20, 'has its result'],
    ['for good', 1_000, 'can be fetched later'],
  ])('whose result cannot be fetched %s (%i answers) %s', async (_, times, end) => {
    const { server, clock, render } = await open()
    server.fault('GET /files/', { status: 500, body: 'down' }, times)
    const rendering = clock.runUntil(render())
    if (end === 'has its result') return expect(await rendering).toHaveLength(1)
    await expect(rendering).rejects.toBeInstanceOf(OutcomeUnknown)
    expect(server.canceled).toEqual([])
  })

  test('whose result is gone has an unknown outcome, with the words of the server', async () => {
    const { server, clock, render, creates } = await open()
    server.expire()
    await expect(clock.runUntil(render())).rejects.toThrow(
      /result is unknown.*answered 404: gone\. Its job is job_1/,
    )
    expect(creates()).toBe(1)
  })

  test('whose time limit passes before its result was fetched can be fetched later', async () => {
    const { server, clock, render } = await open()
    server.fault('GET /files/', { status: 500, body: 'down' }, 1_000)
    const stop = new AbortController()
    const rendering = render({ signal: stop.signal })
    await clock.runUntil(until('a try', () => server.count('GET /files/') > 1))
    stop.abort(new Error('The engine took longer than 5 minutes.'))
    await expect(clock.runUntil(rendering)).rejects.toThrow(/result is unknown.*longer than 5 minutes/)
    expect(server.canceled).toEqual([])
  })

  test('keeps no URL of another origin', async () => {
    const { server, clock, stored, render } = await open()
    const body = {
      request_id: 'job_1',
      status_url: 'http://127.0.0.1:1/x',
      cancel_url: `${server.url}/requests/job_1/cancel`,
    }
    server.jobs.push({ id: 'job_1', input: {}, status: 'IN_QUEUE', polls: 0, position: 0 })
    server.fault('POST', { body })
    expect(await clock.runUntil(render())).toHaveLength(1)
    expect(Object.keys(stored.at(-1)?.handle?.urls ?? {})).toEqual(['cancel'])
  })
})

/** A run whose time limit passes while its job is rendered. */
async function openAtLimit() {
  const opened = await open({ polls: 50 })
  const { clock, polled } = opened
  const { stop, rendering } = await polled()
  const pass = () => stop.abort(new Error('The engine took longer than 5 minutes.'))
  const isUnknown = () =>
    expect(clock.runUntil(rendering)).rejects.toThrow(/result is unknown.*5 minutes\. Its job is job_1/)
  return { ...opened, rendering, pass, isUnknown }
}

test('a run that takes too long cancels its job by its own id, and is refunded if the provider knows the charge', async () => {
  const { server, clock, stored, rendering, pass } = await openAtLimit()
  server.charge = 'not charged'
  pass()
  const error = await clock.runUntil(rendering).catch((thrown: unknown) => thrown)
  expect(error).not.toBeInstanceOf(OutcomeUnknown)
  expect(error).toMatchObject({ message: 'The engine took longer than 5 minutes.' })
  expect([server.canceled, stored.at(-1)?.end]).toEqual([['job_1'], 'over'])
})

test('a run that takes too long has an unknown outcome if its provider only has accepted the cancel', async () => {
  const { server, stored, pass, isUnknown } = await openAtLimit()
  pass()
  await isUnknown()
  expect([server.canceled, stored.at(-1)?.end]).toEqual([['job_1'], undefined])
})

test('a run that takes too long, and whose job cannot be canceled, can be fetched later', async () => {
  const { server, pass, isUnknown } = await openAtLimit()
  server.fault('PUT', 'reset', 10)
  pass()
  await isUnknown()
  expect(server.canceled).toEqual([])
})

test('a run that takes too long has the result of a job that has just succeeded', async () => {
  const { server, clock, rendering, pass } = await openAtLimit()
  for (const job of server.jobs) job.polls = 50
  pass()
  expect(await clock.runUntil(rendering)).toHaveLength(1)
  expect(server.canceled).toEqual([])
})

test('a job that succeeds at the time limit, and whose result does not arrive, can be fetched later', async () => {
  const { server, pass, isUnknown } = await openAtLimit()
  for (const job of server.jobs) job.polls = 50
  server.fault('GET /files/', { status: 500, body: 'down' }, 100)
  pass()
  await isUnknown()
  expect(server.canceled).toEqual([])
})

test('a worker that was suspended before the create, and lost the run meanwhile, sends nothing', async () => {
  const { clock, creates, render, stored } = await open()
  const save = async (job: StoredJob) => {
    if (stored.length > 0) throw new JobDetached('Another worker has taken the run over.')
    stored.push(job)
    await clock.advance(60_000)
  }
  await expect(clock.runUntil(render({ save }))).rejects.toThrow(JobDetached)
  expect(creates()).toBe(0)
})

test('a worker that has lost the run leaves its job to the other one, also when its time limit passes', async () => {
  const { server, clock, polled } = await open({ polls: 50 })
  let isLost = false
  const save = async () => {
    if (isLost) throw new JobDetached('Another worker has taken the run over.')
  }
  const { stop, rendering } = await polled({ save })
  isLost = true
  stop.abort(new Error('The engine took longer than 5 minutes.'))
  await expect(clock.runUntil(rendering)).rejects.toThrow('longer than 5 minutes')
  expect(server.canceled).toEqual([])
})

describe('a canceled run', () => {
  async function canceled(reason: Error, options: OpenOptions = {}) {
    const opened = await open({ polls: 50, ...options })
    const { clock, polled, cancel } = opened
    const { stop, rendering } = await polled()
    stop.abort(reason)
    await expect(clock.runUntil(rendering)).rejects.toBe(reason)
    return { ...opened, charge: await cancel() }
  }

  test('cancels its job by its own id, once', async () => {
    const { server, charge } = await canceled(new RunCanceled())
    expect([server.canceled, charge]).toEqual([['job_1'], 'unknown'])
  })

  test('keeps its job once the result is there', async () => {
    const { server, clock, cancel, render } = await open()
    server.fault('GET /files/', 'hang')
    const stop = new AbortController()
    const rendering = render({ signal: stop.signal })
    await clock.runUntil(until('the download', () => server.count('GET /files/') === 1))
    stop.abort(new RunCanceled())
    await expect(clock.runUntil(rendering)).rejects.toThrow('The run was canceled.')
    expect([await cancel(), server.canceled]).toEqual(['succeeded', []])
  })

  test('is not canceled while the id of its job has not arrived', async () => {
    const { server, clock, cancel, render } = await open()
    server.fault('POST', 'hang')
    const stop = new AbortController()
    const rendering = render({ signal: stop.signal })
    await until('the request arrives', () => server.count('POST') === 1)
    stop.abort(new RunCanceled())
    await clock.advance(2_500)
    await expect(clock.runUntil(rendering)).rejects.toThrow('The run was canceled.')
    expect(await cancel()).toBe('not canceled')
  })

  test('whose answer was lost cancels nothing', async () => {
    const { server, clock, cancel } = await open()
    const intent = { id: 'i', sentAtMs: clock.now(), endpoint: 'model' }
    expect(await clock.runUntil(cancel({ intent }))).toBe('not canceled')
    expect(server.canceled).toEqual([])
  })

  test('was not charged by a server that costs nothing', async () => {
    expect((await canceled(new RunCanceled(), { hasCost: false })).charge).toBe('not charged')
  })

  test('cancels its stored job after the worker has died', async () => {
    const { server, polled, cancel } = await open({ polls: 50 })
    await polled()
    expect([await cancel(), server.canceled]).toEqual(['unknown', ['job_1']])
  })

  test('was not charged when nothing was sent for it', async () => {
    const { cancel } = await open()
    expect([await cancel(), await cancel({})]).toEqual(['not charged', 'not charged'])
  })

  test('was not charged when its server refuses it after the cancel', async () => {
    const { server, clock, cancel, render } = await open()
    const { after, open: answer } = createGate()
    server.fault('POST', { after, answer: { status: 422, body: { detail: 'no' } } })
    const stop = new AbortController()
    const rendering = render({ signal: stop.signal })
    await until('the request arrives', () => server.count('POST') === 1)
    stop.abort(new RunCanceled())
    expect(await cancel()).toBe('not canceled')
    answer()
    await expect(clock.runUntil(rendering)).rejects.toThrow('The run was canceled.')
    expect(await cancel()).toBe('not charged')
  })

  test('whose server does not confirm the cancel may continue', async () => {
    const { server, polled, cancel } = await open({ polls: 50 })
    await polled()
    for (const fault of [{ status: 502 }, 'reset'] as const) {
      server.fault('PUT', fault)
      expect(await cancel()).toBe('not canceled')
    }
    expect([await cancel(), server.canceled]).toEqual(['unknown', ['job_1']])
  })
})

describe('an engine that renders within one request', () => {
  async function openOnce() {
    const { clock, stored, upstream, ...rest } = await open()
    const engine = createOnceEngine(upstream, {
      endpoint: 'model',
      clock,
      send: (job) => upstream.render({ method: 'POST', path: 'model', json: {} }, job),
      publish: async (answer, job) => {
        const { link } = answer as { readonly link?: string }
        return link === undefined ? [] : await publishOutputs(job, [await upstream.download(link, job)])
      },
    })
    const save = async (job: StoredJob) => void stored.push(job)
    const render = (more: Partial<RenderJob> = {}) => engine.render(jobOf({ save, ...more }))
    return { ...rest, clock, stored, render, engine }
  }

  test.each<[name: string, fault: ServerFault]>([
    ['a lost answer', 'lose'],
    ['503 of a proxy', { status: 503, body: { error: 'no healthy upstream' } }],
    ['502', { status: 502 }],
  ])('is not sent again after %s, and its outcome is unknown', async (_, fault) => {
    const { server, clock, stored, render, creates } = await openOnce()
    server.fault('POST', fault)
    await expect(clock.runUntil(render())).rejects.toBeInstanceOf(OutcomeUnknown)
    expect([creates(), stored]).toEqual([
      1,
      [{ intent: { id: expect.any(String), sentAtMs: clock.now(), endpoint: 'model' } }],
    ])
    await expect(clock.runUntil(render({ stored: stored[0] }))).rejects.toThrow(
      'The service stopped before it ended.',
    )
    expect(creates()).toBe(1)
  })

  test.each<[name: string, fault: ServerFault]>([
    ['is refused', { status: 404, body: { detail: 'gone' } }],
    ['is hidden by a proxy', { status: 502, body: '<html>' }],
    ['breaks off', 'reset'],
  ])('has an unknown outcome when the file of its paid answer %s', async (_, fault) => {
    const { server, clock, stored, render, creates } = await openOnce()
    server.fault('POST', { body: { link: '/files/1' } })
    server.fault('GET', fault, 100)
    await expect(clock.runUntil(render())).rejects.toBeInstanceOf(OutcomeUnknown)
    expect([creates(), stored]).toEqual([1, [{ intent: expect.anything() }]])
  })

  test('sends nothing for a job that an operator names', async () => {
    const { clock, render, creates } = await openOnce()
    const stored = { handle: { id: 'job_1' } }
    await expect(clock.runUntil(render({ stored }))).rejects.toBeInstanceOf(OutcomeUnknown)
    expect(creates()).toBe(0)
  })

  test('fails with a refusal of the server, and waits for one that is busy', async () => {
    const { server, clock, stored, render, creates } = await openOnce()
    server.fault('POST', { status: 429 })
    await clock.runUntil(render())
    expect([creates(), stored.map((each) => Object.keys(each).length)]).toEqual([2, [1, 0, 1]])
    server.fault('POST', { status: 400, body: { error: 'bad prompt' } })
    await expect(clock.runUntil(render())).rejects.toThrow('answered 400: bad prompt')
    expect(stored.at(-1)).toEqual({})
  })
})
