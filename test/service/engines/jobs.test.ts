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
import {
  createGate,
  createManualClock,
  type ServerAnswer,
  type ServerFault,
  temporaryFolder,
  until,
  whenOver,
} from '../../support/index.js'
import { jobOf } from '../../support/model-servers/engine.js'
import {
  createProvider,
  createProviderServer,
  type Provider,
  type ProviderOptions,
} from '../../support/model-servers/provider.js'

interface OpenOptions extends ProviderOptions {
  readonly hasCost?: boolean
}

const DETACHED = new JobDetached('the service stops')
const TOO_LONG = new Error('The engine took longer than 5 minutes.')
const INTENT = { id: 'i', sentAtMs: 1, endpoint: 'model' }

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
  /** As the store does, which refuses a create while the outcome of another one is open. */
  const save = async (job: StoredJob) => {
    const { intent, handle } = stored.at(-1) ?? {}
    const isOpen = intent !== undefined && handle === undefined && job.intent !== undefined
    if (isOpen && intent.id !== job.intent?.id) throw new JobDetached('Another create was sent.')
    stored.push(job)
  }
  /** As another worker would, with what was stored. */
  const render = (more: Partial<RenderJob> = {}) => {
    const rendering = engine.render(jobOf({ stored: stored.at(-1), save, ...more }))
    rendering.catch(() => {})
    return rendering
  }
  const run = async (more?: Partial<RenderJob>) => await clock.runUntil(render(more))
  /** Renders until the job was polled twice. */
  const polled = async (more: Partial<RenderJob> = {}) => {
    const stop = new AbortController()
    const rendering = render({ signal: stop.signal, ...more })
    await clock.runUntil(until('a poll', () => (server.jobs[0]?.polls ?? 0) > 1))
    return { stop, rendering }
  }
  /** Renders until this request has arrived, which is answered when the test says so. */
  const arrived = async (request: string, answer?: ServerAnswer) => {
    const gate = createGate()
    server.fault(request, { after: gate.after, ...(answer && { answer }) })
    const stop = new AbortController()
    const rendering = render({ signal: stop.signal })
    await clock.runUntil(until(request, () => server.count(request) > 0))
    return { stop, rendering, answer: gate.open }
  }
  const cancel = (job = stored.at(-1)) => engine.cancel({ id: 'run_7', model: 'm', stored: job })
  const creates = () => server.count('POST')
  return { server, clock, upstream, engine, stored, save, render, run, polled, arrived, cancel, creates }
}

test('the intent is stored before the create, and the job before its first poll', async () => {
  const { server, run, clock, stored } = await open()
  const counts: [creates: number, polls: number][] = []
  const save = async (job: StoredJob) => {
    counts.push([server.count('POST'), server.count('GET')])
    stored.push(job)
  }
  expect(await run({ save })).toHaveLength(1)
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

const UNKNOWN = 'an unknown outcome'
const RESULT = 'its result'
const NO_KEY = { detail: 'No user found' }
const NOT_FOUND = { status: 404, body: { status: 'NOT_FOUND' } }
const DOWN = { status: 500, body: 'down' }

test.each<[what: string, end: string, request: string, fault: ServerFault, times?: number]>([
  ['a create that is answered 502', UNKNOWN, 'POST', { status: 502, body: '<html>' }],
  ['a create that is answered 503', UNKNOWN, 'POST', { status: 503, body: { error: 'no upstream' } }],
  ['a create that a proxy answers 404', UNKNOWN, 'POST', { status: 404, body: '404 page not found' }],
  ['a create that is answered by a page', UNKNOWN, 'POST', { body: '<html>' }],
  ['a create that is answered without an id', UNKNOWN, 'POST', { body: {} }],
  ['a create whose connection breaks', UNKNOWN, 'POST', 'reset'],
  ['a create whose answer is lost', UNKNOWN, 'POST', 'lose'],
  ['a create whose answer breaks off', UNKNOWN, 'POST', { bytes: 3, ending: 'reset' }],
  ['404 pages of a proxy', RESULT, 'GET /requests/', { status: 404, body: '<html>404</html>' }, 40],
  ['empty 404 answers', RESULT, 'GET /requests/', { status: 404 }, 40],
  ['three denials of the server in a row', RESULT, 'GET /requests/', NOT_FOUND, 3],
  ['502 pages', RESULT, 'GET /requests/', { status: 502, body: '<html>' }, 40],
  ['200 pages of many values', RESULT, 'GET /requests/', { body: `<html>${','.repeat(20_000)}` }, 40],
  ['states that nobody knows', RESULT, 'GET /requests/', { body: { status: 'PAUSED_FOR_LUNCH' } }, 40],
  ['four refusals of the key', RESULT, 'GET /requests/', { status: 401, body: NO_KEY }, 4],
  ['four answers about the balance', RESULT, 'GET /requests/', { status: 402, body: NO_KEY }, 4],
  ['403 pages of a firewall', RESULT, 'GET /requests/', { status: 403, body: '<html>Blocked</html>' }, 40],
  ['a poll that the server calls invalid', UNKNOWN, 'GET /requests/', { status: 422, body: NO_KEY }],
  ['an expired link, which is fresh after a poll', RESULT, 'GET /files/', { status: 403, body: 'expired' }],
  ['a host of results that is down for a time', RESULT, 'GET /files/', DOWN, 20],
  ['a host of results that is down for good', UNKNOWN, 'GET /files/', DOWN, 1_000],
])('after %s, a run has %s, and its job is neither sent again nor canceled', async (_, ...row) => {
  const [end, request, fault, times] = row
  const { server, run, creates } = await open()
  server.fault(request, fault, times)
  const rendering = run()
  if (end === RESULT) expect(await rendering).toHaveLength(1)
  else await expect(rendering).rejects.toBeInstanceOf(OutcomeUnknown)
  expect([creates(), server.canceled]).toEqual([1, []])
})

test.each([401, 402, 403, 404])(
  'a job whose polls its provider answers with %i for minutes is not canceled, and its outcome is unknown',
  async (status) => {
    const { server, run, clock, creates } = await open()
    server.fault('GET /requests/', { status, body: NO_KEY }, 1_000)
    const startedAtMs = clock.monotonic()
    const error = await run().catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(OutcomeUnknown)
    expect(error).toMatchObject({ message: expect.stringContaining('job_1.') })
    expect(clock.monotonic() - startedAtMs).toBeGreaterThan(120_000)
    expect([creates(), server.canceled]).toEqual([1, []])
  },
)

test('a job that costs nothing fails after four denials in a row', async () => {
  const { server, run, creates } = await open({ hasCost: false })
  server.fault('GET /requests/', NOT_FOUND, 4)
  await expect(run()).rejects.toThrow('no longer knows this job')
  expect([creates(), server.canceled, server.count('GET /requests/')]).toEqual([1, [], 4])
})

describe('a create that was certainly refused', () => {
  test.each([
    ['with a time in its body', { retry_after: 9 }, 9_000],
    ['without a time', { detail: 'throttled' }, 1_000],
  ])('is sent again after a 429 %s', async (_, body, waitMs) => {
    const { server, run, clock, stored, creates } = await open()
    server.fault('POST', { status: 429, body })
    const startedAt = clock.monotonic()
    expect(await run()).toHaveLength(1)
    expect([creates(), server.jobs.length]).toEqual([2, 1])
    expect(clock.monotonic() - startedAt).toBeGreaterThanOrEqual(waitMs)
    const keys = stored.map((each) => Object.keys(each)[0])
    expect(keys).toEqual(['intent', undefined, 'intent', 'handle', 'handle'])
  })

  test("fails with the server's own answer, and its intent is taken back for the refund", async () => {
    const { server, run, stored } = await open()
    server.fault('POST', { status: 422, body: { detail: [{ loc: ['body', 'prompt'], msg: 'too long' }] } })
    await expect(run()).rejects.toThrow('answered 422: body.prompt: too long')
    expect([server.requests.length, stored.at(-1)]).toEqual([1, {}])
  })
})

describe('another worker', () => {
  test('follows a stored job, and starts none', async () => {
    const { server, run, clock, stored, arrived, creates } = await open()
    const { stop, rendering, answer } = await arrived('GET /requests/')
    stop.abort(DETACHED)
    answer()
    await expect(clock.runUntil(rendering)).rejects.toBe(DETACHED)
    expect(server.canceled).toEqual([])
    expect(await run()).toHaveLength(1)
    expect([creates(), stored.at(-1)?.handle?.id]).toEqual([1, 'job_1'])
  })

  test('sends no create whose intent is stored', async () => {
    const { run, creates } = await open()
    await expect(run({ stored: { intent: INTENT } })).rejects.toBeInstanceOf(OutcomeUnknown)
    expect(creates()).toBe(0)
  })

  test('gets the id that arrives after the stop', async () => {
    const { server, clock, stored, arrived } = await open()
    const { stop, rendering, answer } = await arrived('POST')
    stop.abort(DETACHED)
    answer()
    await expect(clock.runUntil(rendering)).rejects.toBe(DETACHED)
    expect([stored.at(-1)?.handle?.id, server.canceled]).toEqual(['job_1', []])
  })
})

describe('a job', () => {
  test('reports its place among 12,000', async () => {
    const { run } = await open({ queued: 18_000 })
    const places: number[] = []
    await run({ onPosition: (position) => void places.push(position) })
    expect(places).toEqual([12_000, 6_000, 0])
  })

  test.each<[what: string, options: ProviderOptions, message: string]>([
    ['that the provider reports as aborted', { states: ['IN_QUEUE', 'aborted'] }, 'The job was aborted.'],
    ['whose failure hides behind COMPLETED', { error: 'NSFW content detected' }, 'NSFW content detected'],
  ])('%s fails', async (_, options, message) => {
    const { server, run } = await open(options)
    await expect(run()).rejects.toThrow(message)
    expect(server.canceled).toEqual([])
  })

  test('with a result that is not an image is fetched once, and leaves no file', async () => {
    const { server, run, stored } = await open()
    const folder = temporaryFolder()
    server.fault('GET /files/', { body: '<svg xmlns="http://www.w3.org/2000/svg"/>' }, 100)
    await expect(run({ folder })).rejects.toThrow('which is not an image')
    expect([server.count('GET /files/'), readdirSync(folder)]).toEqual([1, []])
    expect(stored.at(-1)).toMatchObject({ handle: { id: 'job_1' }, end: 'over' })
  })

  test('without a usable result removes nothing behind a link in the place of its folder', async () => {
    const { server, run } = await open()
    const [others, folder] = [temporaryFolder(), join(temporaryFolder(), 'link')]
    writeFileSync(join(others, '.profile'), 'of others')
    symlinkSync(others, folder)
    server.fault('GET /files/', { body: '<svg xmlns="http://www.w3.org/2000/svg"/>' }, 100)
    await expect(run({ folder })).rejects.toThrow('which is not an image')
    expect(readdirSync(others)).toContain('.profile')
  })

  test('whose model has another server now gets no request, and its outcome is unknown', async () => {
    const { server, run, cancel } = await open()
    for (const change of [{ type: 'fal' }, { origin: 'https://other.example.com' }]) {
      const place = { type: 'provider', origin: server.url, costs: true, ...change }
      const stored = { handle: { id: 'job_1', place } }
      await expect(run({ stored })).rejects.toBeInstanceOf(OutcomeUnknown)
      for (const job of [stored, { intent: { ...INTENT, place } }])
        expect(await cancel(job)).toBe('not canceled')
    }
    expect(server.requests).toEqual([])
  })

  test('whose result is gone has an unknown outcome, with the words of the server', async () => {
    const { server, run } = await open()
    server.fault('GET /files/', { status: 404, body: { detail: 'gone' } }, 1_000)
    await expect(run()).rejects.toThrow(/result is unknown.*answered 404: gone\. Its job is job_1/)
  })

  test('keeps no URL of another origin', async () => {
    const { server, run, stored } = await open()
    const cancel_url = `${server.url}/requests/job_1/cancel`
    server.jobs.push({ id: 'job_1', input: {}, status: 'IN_QUEUE', polls: 0, position: 0 })
    server.fault('POST', { body: { request_id: 'job_1', status_url: 'http://127.0.0.1:1/x', cancel_url } })
    expect(await run()).toHaveLength(1)
    expect(Object.keys(stored.at(-1)?.handle?.urls ?? {})).toEqual(['cancel'])
  })
})

describe('a run that takes too long', () => {
  const LATER = /result is unknown.*longer than 5 minutes\. Its job is job_1/
  const succeed = ({ jobs }: Provider) => {
    for (const job of jobs) job.polls = 50
  }
  test.each<[what: string, before: (server: Provider) => unknown, end: RegExp | string, canceled: string[]]>([
    [
      'is refunded if the provider knows the charge of its canceled job',
      (server) => {
        server.charge = 'not charged'
      },
      /^The engine took longer than 5 minutes\.$/,
      ['job_1'],
    ],
    ['has an unknown outcome if the provider has only accepted the cancel', () => {}, LATER, ['job_1']],
    ['has one if its job cannot be canceled', (server) => server.fault('PUT', 'reset', 10), LATER, []],
    ['has the result of a job that has just succeeded', succeed, RESULT, []],
    [
      'can be fetched later if that result does not arrive',
      (server) => {
        succeed(server)
        server.fault('GET /files/', DOWN, 100)
      },
      LATER,
      [],
    ],
  ])('%s', async (_, before, end, canceled) => {
    const { server, clock, stored, polled } = await open({ polls: 50 })
    const { stop, rendering } = await polled()
    before(server)
    stop.abort(TOO_LONG)
    if (end === RESULT) expect(await clock.runUntil(rendering)).toHaveLength(1)
    else await expect(clock.runUntil(rendering)).rejects.toThrow(end)
    expect(server.canceled).toEqual(canceled)
    expect(stored.at(-1)?.end === 'over').toBe(server.charge === 'not charged')
  })

  test('keeps what the provider charged for its canceled job, for a cancel of its user at the same time', async () => {
    const { server, clock, polled, cancel } = await open({ polls: 50 })
    const { stop, rendering } = await polled()
    server.charge = 'charged'
    stop.abort(TOO_LONG)
    await expect(clock.runUntil(rendering)).rejects.toThrow(TOO_LONG)
    expect(await cancel()).toBe('charged')
    expect(server.canceled).toEqual(['job_1'])
  })

  test('can be fetched later if its time ends before its result was fetched', async () => {
    const { server, clock, render } = await open()
    server.fault('GET /files/', DOWN, 1_000)
    const stop = new AbortController()
    const rendering = render({ signal: stop.signal })
    await clock.runUntil(until('a try', () => server.count('GET /files/') > 1))
    stop.abort(TOO_LONG)
    await expect(clock.runUntil(rendering)).rejects.toThrow(LATER)
    expect(server.canceled).toEqual([])
  })

  test('is left to the worker that has taken it over', async () => {
    const { server, clock, polled } = await open({ polls: 50 })
    let isLost = false
    const save = async () => {
      if (isLost) throw new JobDetached('Another worker has taken the run over.')
    }
    const { stop, rendering } = await polled({ save })
    isLost = true
    stop.abort(TOO_LONG)
    await expect(clock.runUntil(rendering)).rejects.toBe(TOO_LONG)
    expect(server.canceled).toEqual([])
  })
})

test('a worker that was suspended before the create, and lost the run meanwhile, sends nothing', async () => {
  const { run, clock, creates, stored } = await open()
  const save = async (job: StoredJob) => {
    if (stored.length > 0) throw new JobDetached('Another worker has taken the run over.')
    stored.push(job)
    await clock.advance(60_000)
  }
  await expect(run({ save })).rejects.toThrow(JobDetached)
  expect(creates()).toBe(0)
})

test.each([new JobDetached('the service stops', 10_000), new RunCanceled()])(
  'sends no create after %s while its intent is stored',
  async (reason) => {
    const { stored, save, run, creates } = await open()
    const stop = new AbortController()
    const saveAtStop = async (job: StoredJob) => {
      await save(job)
      stop.abort(reason)
    }
    await expect(run({ signal: stop.signal, save: saveAtStop })).rejects.toBe(reason)
    expect([creates(), stored.at(-1)]).toEqual([0, {}])
  },
)

test('a worker that stood still before the create, and still has the run, sends it once', async () => {
  const { run, clock, creates, save } = await open()
  const saveSlowly = async (job: StoredJob) => {
    await save(job)
    if (creates() === 0) await clock.advance(12_000)
  }
  expect(await run({ save: saveSlowly })).toHaveLength(1)
  expect(creates()).toBe(1)
})

describe('a canceled run', () => {
  const CANCELED = new RunCanceled()

  test.each([
    ['cancels its job by its own id, once', true, 'unknown'],
    ['was not charged by a server that costs nothing', false, 'not charged'],
  ])('%s', async (_, hasCost, charge) => {
    const { server, clock, polled, cancel } = await open({ polls: 50, hasCost })
    const { stop, rendering } = await polled()
    stop.abort(CANCELED)
    await expect(clock.runUntil(rendering)).rejects.toBe(CANCELED)
    expect([await cancel(), server.canceled]).toEqual([charge, ['job_1']])
  })

  test('keeps its job once the result is there', async () => {
    const { server, clock, cancel, arrived } = await open()
    const { stop, rendering } = await arrived('GET /files/')
    stop.abort(CANCELED)
    await expect(clock.runUntil(rendering)).rejects.toBe(CANCELED)
    expect([await cancel(), server.canceled]).toEqual(['succeeded', []])
  })

  test('is not canceled while the id of its job has not arrived', async () => {
    const { server, clock, cancel, arrived } = await open()
    const { stop, rendering } = await arrived('POST')
    stop.abort(CANCELED)
    await clock.advance(2_500)
    await expect(clock.runUntil(rendering)).rejects.toBe(CANCELED)
    expect([await cancel(), server.canceled]).toEqual(['not canceled', []])
  })

  test('was not charged when nothing was sent for it', async () => {
    const { cancel } = await open()
    expect([await cancel(), await cancel({})]).toEqual(['not charged', 'not charged'])
  })

  test('was not charged when its server refuses it after the cancel', async () => {
    const { clock, cancel, arrived } = await open()
    const { stop, rendering, answer } = await arrived('POST', { status: 422, body: { detail: 'no' } })
    stop.abort(CANCELED)
    expect(await cancel()).toBe('not canceled')
    answer()
    await expect(clock.runUntil(rendering)).rejects.toBe(CANCELED)
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
    const { clock, stored, upstream, server, creates, save } = await open()
    const engine = createOnceEngine(upstream, {
      endpoint: 'model',
      clock,
      send: (job) => upstream.render({ method: 'POST', path: 'model', json: {} }, job),
      publish: async (answer, job) => {
        const { link } = answer as { readonly link?: string }
        return link === undefined ? [] : await publishOutputs(job, [await upstream.download(link, job)])
      },
    })
    const render = (more: Partial<RenderJob> = {}) => clock.runUntil(engine.render(jobOf({ save, ...more })))
    return { clock, stored, save, server, creates, render }
  }

  test.each<[name: string, fault: ServerFault, file?: ServerFault]>([
    ['its answer is lost', 'lose'],
    ['a proxy answers 503', { status: 503, body: { error: 'no healthy upstream' } }],
    ['it is answered 502', { status: 502 }],
    ['the file of its paid answer is refused', { body: { link: '/files/1' } }, NOT_FOUND],
    ['that file is hidden by a proxy', { body: { link: '/files/1' } }, { status: 502, body: '<html>' }],
    ['that file breaks off', { body: { link: '/files/1' } }, 'reset'],
  ])('has an unknown outcome, and is not sent again, when %s', async (_, fault, file) => {
    const { server, clock, stored, render, creates } = await openOnce()
    const startedAtMs = clock.now()
    server.fault('POST', fault)
    if (file !== undefined) server.fault('GET', file, 100)
    await expect(render()).rejects.toBeInstanceOf(OutcomeUnknown)
    const intent = { id: expect.any(String), sentAtMs: startedAtMs, endpoint: 'model' }
    expect([creates(), stored]).toEqual([1, [{ intent }]])
    await expect(render({ stored: stored[0] })).rejects.toThrow('The service stopped before it ended.')
    expect(creates()).toBe(1)
  })

  test('sends nothing for a job that an operator names', async () => {
    const { render, creates } = await openOnce()
    await expect(render({ stored: { handle: { id: 'job_1' } } })).rejects.toBeInstanceOf(OutcomeUnknown)
    expect(creates()).toBe(0)
  })

  test.each([429, 400])(
    'may be sent by another worker when it is refused (%i) after a stop',
    async (status) => {
      const { server, clock, stored, render, creates } = await openOnce()
      const gate = createGate()
      server.fault('POST', { after: gate.after, answer: { status, body: { error: 'no' } } })
      const stop = new AbortController()
      const rendering = render({ signal: stop.signal })
      rendering.catch(() => {})
      await clock.runUntil(until('the create', () => creates() === 1))
      stop.abort(new JobDetached('the service stops', 10_000))
      gate.open()
      await expect(rendering).rejects.toBeInstanceOf(JobDetached)
      expect([creates(), stored.at(-1)]).toEqual([1, {}])
    },
  )

  test('may be sent by another worker after a stop while its intent is stored', async () => {
    const { stored, save, render, creates } = await openOnce()
    const stop = new AbortController()
    const saveAtStop = async (job: StoredJob) => {
      await save(job)
      stop.abort(new JobDetached('the service stops', 10_000))
    }
    await expect(render({ signal: stop.signal, save: saveAtStop })).rejects.toBeInstanceOf(JobDetached)
    expect([creates(), stored.at(-1)]).toEqual([0, {}])
  })

  test('fails with a refusal of the server, and waits for one that is busy', async () => {
    const { server, stored, render, creates } = await openOnce()
    server.fault('POST', { status: 429 })
    await render()
    expect([creates(), stored.map((each) => Object.keys(each).length)]).toEqual([2, [1, 0, 1]])
    stored.length = 0
    server.fault('POST', { status: 400, body: { error: 'bad prompt' } })
    await expect(render()).rejects.toThrow('answered 400: bad prompt')
    expect(stored.at(-1)).toEqual({})
  })
})
