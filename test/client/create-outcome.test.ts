/** Which create may be sent twice: a test for every outcome. */
import { describe, expect, it } from 'vitest'
import { MAX_ANSWER_BYTES } from '../../src/client/requests.js'
import { EXIT, RushesError } from '../../src/errors.js'
import { HttpFailure } from '../../src/host/http.js'
import { PROBLEMS, type ProblemCode } from '../../src/protocol/problems.js'
import {
  BASE_URL,
  type Bench,
  type BenchOptions,
  createBench,
  KEY,
  lost,
  problem,
  rejection,
  type Scripted,
  type Step,
  unconnected,
} from './wire.js'

const BODY = { model: 'acme/still-1', input: { prompt: 'a fox' } }
const CREATED: Scripted = { status: 201, body: { id: 'r1' } }
const RATE_LIMITED = problem(429, 'RATE_LIMITED')
/** The manual clock's first instant. */
const START_MS = Date.UTC(2026, 0, 1)

interface Sending extends Bench {
  readonly retries: readonly [number, string][]
  readonly result: Promise<{ readonly id: string; readonly body: unknown }>
}

function sending(steps: readonly Step[], options?: BenchOptions, signal?: AbortSignal): Sending {
  const bench = createBench(steps, options)
  const retries: [number, string][] = []
  const created = bench.client.create(BODY, { signal, onRetry: (waitMs, why) => retries.push([waitMs, why]) })
  return { ...bench, retries, result: bench.clock.runUntil(created) }
}

async function failing(steps: readonly Step[], options?: BenchOptions) {
  const sent = sending(steps, options)
  const error = await rejection(sent.result)
  if (!(error instanceof RushesError)) throw error
  return { ...sent, error }
}

const nothingPaid = /The run was not created and nothing was paid for it\.$/
const mayExist = /A run may exist and cost money\.$/

describe('edge 1: a 201 with an id is the only success', () => {
  const places: [string, Scripted, string][] = [
    ['id', { status: 201, body: { id: 'a' } }, 'a'],
    ['run_id', { status: 201, body: { run_id: 'a' } }, 'a'],
    ['runId', { status: 201, body: { runId: 'a' } }, 'a'],
    ...['run', 'data', 'result'].flatMap((envelope) =>
      ['id', 'run_id', 'runId'].map((name): [string, Scripted, string] => [
        `${envelope}.${name}`,
        { status: 201, body: { [envelope]: { [name]: 'a' } } },
        'a',
      ]),
    ),
    ['an integer', { status: 201, body: { id: 42 } }, '42'],
    ['Location, relative', { status: 201, body: {}, headers: { Location: '/api/v1/runs/a%2Fb' } }, 'a/b'],
    ['Location, absolute', { status: 201, headers: { location: 'https://x.test/runs/a?x=1#y' } }, 'a'],
    ['Location beside a body that is no JSON', { status: 201, body: '<p>', headers: { location: 'a' } }, 'a'],
    ['id before Location', { status: 201, body: { id: 'a' }, headers: { location: '/b' } }, 'a'],
    ['id before run.id', { status: 201, body: { id: 'a', run: { id: 'b' } } }, 'a'],
    ['an id that is none is passed over', { status: 201, body: { id: '', run_id: 'a' } }, 'a'],
    [
      'a number too large to be exact is passed over',
      { status: 201, body: '{"id":36893488147419103233,"run_id":"a"}' },
      'a',
    ],
    [
      'an integer of 64 bits keeps its digits',
      { status: 201, body: '{"id":18446744073709551615,"run_id":"a"}' },
      '18446744073709551615',
    ],
  ]
  it.each(places)('%s', async (_, step, id) => {
    const { result, requests } = sending([step])
    expect((await result).id).toBe(id)
    expect(requests).toHaveLength(1)
  })

  it('runIdField comes before all other places', async () => {
    const step = { status: 201, body: { id: 'a', job: { uuid: 'own' } } }
    expect((await sending([step], { runIdField: 'job.uuid' }).result).id).toBe('own')
  })

  it('runIdField that names nothing falls back to the usual places', async () => {
    expect((await sending([CREATED], { runIdField: 'job.uuid' }).result).id).toBe('r1')
  })

  it('gives the parsed body, and null where there is none', async () => {
    expect(await sending([CREATED]).result).toEqual({ id: 'r1', body: { id: 'r1' } })
    expect((await sending([{ status: 201, headers: { location: '/r1' } }]).result).body).toBeNull()
  })

  it('sends one fresh POST with the whole body', async () => {
    const { result, requests } = sending([CREATED])
    await result
    const [request] = requests
    expect(request).toMatchObject({ method: 'POST', fresh: true })
    expect(request?.url.href).toBe(`${BASE_URL}/api/v1/runs`)
    expect(JSON.parse(Buffer.from(request?.body ?? []).toString())).toEqual(BODY)
    expect(request?.headers).toMatchObject({ 'content-type': 'application/json' })
  })
})

describe('edge 2: a 201 without an id is a run that is paid for', () => {
  const bodies: [string, Scripted, string][] = [
    ['another shape', { status: 201, body: { job: 'x' } }, '{"job":"x"}'],
    ['no JSON', { status: 201, body: '<p>\u001b[31mthanks' }, '<p>[31mthanks'],
    ['nothing', { status: 201 }, '(empty)'],
    ['a list', { status: 201, body: [{ id: 'a' }] }, '[{"id":"a"}]'],
    ['an id of 257 characters', { status: 201, body: { id: 'x'.repeat(257) } }, 'xxx'],
    ['an id with a control character', { status: 201, body: { id: 'a\nb' } }, '\\nb'],
    [
      'a Location that is the collection',
      { status: 201, headers: { location: '/prefix/api/v1/runs/' } },
      '(empty)',
    ],
  ]
  it.each(bodies)('%s', async (_, step, shown) => {
    const { error, requests } = await failing([step])
    expect(error).toMatchObject({
      code: 'submission_unknown',
      exitCode: EXIT.outcomeUnknown,
      httpStatus: 201,
    })
    expect(error.message).toContain(shown)
    expect(error.message).toContain('exists and costs money')
    expect(requests).toHaveLength(1)
  })

  it('shows the whole answer, however long', async () => {
    const text = 'x'.repeat(100_000)
    expect((await failing([{ status: 201, body: { text } }])).error.message).toContain(text)
  })
})

describe('edge 3: a 201 that is cut off', () => {
  it('is accepted by its Location', async () => {
    const step = { status: 201, body: '{"id":', cut: true, headers: { location: '/api/v1/runs/r9' } }
    expect(await sending([step]).result).toEqual({ id: 'r9', body: null })
  })

  it('is unknown without one, and shows what arrived', async () => {
    const { error, requests } = await failing([{ status: 201, body: '{"id":"run_', cut: true }])
    expect(error).toMatchObject({ code: 'submission_unknown', exitCode: 13, httpStatus: 201 })
    expect(error.message).toContain('broke off before the run id (the body was cut)')
    expect(error.message).toMatch(/The run exists and costs money\. Received: \{"id":"run_$/)
    expect(requests).toHaveLength(1)
  })

  it.each([
    ['in the middle of what follows', '{"id":"r9","sta', undefined],
    ['right after it', '{"id":"r9"', undefined],
    ['below an envelope', '{"note":[1,{"id":"x"}],"run":{"state":{"id":"x"},"run_id":"r9","inp', undefined],
    ['where runIdField says', '{"id":"other","job":{"uuid":"r9"},"x', 'job.uuid'],
  ])('is accepted by the id that arrived: %s', async (_, body, runIdField) => {
    const { result, requests } = sending([{ status: 201, body, cut: true }], { runIdField })
    expect(await result).toEqual({ id: 'r9', body: null })
    expect(requests).toHaveLength(1)
  })

  it('is accepted by the id also when the connection ended as if the body were whole', async () => {
    expect(await sending([{ status: 201, body: '{"id":"r9","sta' }]).result).toEqual({ id: 'r9', body: null })
  })

  it('is accepted with its body when only the end of the connection was wrong', async () => {
    const whole = { id: 'r9', status: 'queued' }
    expect(await sending([{ status: 201, body: whole, cut: true }]).result).toEqual({ id: 'r9', body: whole })
  })

  it('is the same when it is larger than 8 MiB', async () => {
    const huge = (start: string) => ({
      status: 201,
      body: Buffer.concat([Buffer.from(start), Buffer.alloc(MAX_ANSWER_BYTES + 1, 'x')]),
    })
    expect((await failing([huge('')])).error).toMatchObject({ exitCode: 13, httpStatus: 201 })
    expect((await sending([huge('{"id":"r8","log":"')]).result).id).toBe('r8')
    const named = { ...huge(''), headers: { location: '/api/v1/runs/r9' } }
    expect((await sending([named]).result).id).toBe('r9')
  })

  it('leaves no part of the API key in what is shown', async () => {
    const body = `{"echo":"Bearer ${KEY.slice(0, -3)}`
    const { error } = await failing([{ status: 201, body, cut: true }])
    expect(error.message).toMatch(/Received: \{"echo":"Bearer \[API key\]$/)
  })

  it('is accepted by the id that arrived before a signal, and otherwise ends with the signal', async () => {
    const reason = new RushesError('interrupted', 'a signal', { exitCode: EXIT.sigterm })
    const ends: unknown[] = []
    for (const body of ['{"id":"r9","sta', '{"sta']) {
      const stop = new AbortController()
      // With the head of the answer.
      const trace = (line: string) => line.startsWith('<') && stop.abort(reason)
      const created = sending([{ status: 201, body, cut: reason }], { trace }, stop.signal).result
      ends.push(await created.catch((error: unknown) => error))
    }
    expect(ends).toEqual([{ id: 'r9', body: null }, reason])
  })
})

describe('edge 4: another 2xx is unknown', () => {
  it.each([200, 202, 204, 226])('%i', async (status) => {
    const { error, requests } = await failing([{ status, body: { id: 'a' } }])
    expect(error).toMatchObject({ code: 'submission_unknown', exitCode: 13, httpStatus: status })
    expect(error.message).toMatch(mayExist)
    expect(requests).toHaveLength(1)
  })
})

describe('edge 5: a create is never redirected', () => {
  it.each([300, 301, 302, 303, 304, 307, 308])('%i', async (status) => {
    const step = { status, headers: { location: `${BASE_URL}/api/v1/elsewhere` } }
    const { error, requests } = await failing([step])
    expect(error).toMatchObject({ code: 'bad_response', exitCode: EXIT.serviceBroken, httpStatus: status })
    expect(error.message).toContain('The run was not created')
    expect(requests).toHaveLength(1)
  })
})

describe('edge 6: a refusal by a documented code', () => {
  const codes = Object.entries(PROBLEMS).filter(([code]) => code !== 'RATE_LIMITED')
  it.each(codes)('%s', async (code, { status, exit, hint }) => {
    const { error, requests, retries } = await failing([problem(status, code)])
    expect(error).toMatchObject({ code, exitCode: exit, httpStatus: status, hint })
    expect(error.message).toContain(`${code} happened`)
    expect(error.message).toMatch(nothingPaid)
    expect(requests).toHaveLength(1)
    expect(retries).toEqual([])
  })

  it('USAGE_EXCEEDED is no rate limit: one request, exit 5', async () => {
    const { error, requests } = await failing([problem(429, 'USAGE_EXCEEDED', { 'retry-after': '1' })])
    expect([error.exitCode, requests.length]).toEqual([EXIT.account, 1])
  })
})

describe('edge 7: a refusal by its status alone', () => {
  const failed = async (step: Scripted, exitCode: number) => {
    const { error, requests } = await failing([step])
    expect(error).toMatchObject({ exitCode, httpStatus: step.status })
    expect(error.message).toMatch(nothingPaid)
    expect(requests).toHaveLength(1)
  }

  const others = [400, 404, 405, 408, 409, 410, 413, 415, 422, 451, 499]
  it.each<[status: number, exit: number]>([
    [401, 4],
    [402, 5],
    [403, 5],
    ...others.map((status): [number, number] => [status, 3]),
  ])('%i → %i', (status, exitCode) => failed({ status }, exitCode))

  it('of a body that is too large names its size, and a URL as the way out', async () => {
    const { error } = await failing([{ status: 413, body: '<h1>413 Request Entity Too Large</h1>' }])
    expect(error).toMatchObject({ exitCode: EXIT.refused, hint: expect.stringContaining('http(s) URLs') })
    expect(error.message).toMatch(/The request body has \d+ B, which is too large/)
    expect(error.message).toMatch(nothingPaid)
  })

  it.each([
    [{ detail: 'Not enough memory' }, 'Not enough memory'],
    [
      { detail: [{ loc: ['body', 'input', 'seed'], msg: 'too large', type: 'x' }, { msg: 'second' }] },
      'body.input.seed: too large; second',
    ],
    [{ detail: [{ loc: ['body'] }, null, 7] }, '{"detail":'],
  ])('shows the reason in `detail`, as FastAPI sends it: %j', async (body, reason) => {
    const { error } = await failing([{ status: 422, body }])
    expect(error.message).toContain(`The service answered 422: ${reason}`)
  })

  it.each<[string, Omit<Scripted, 'status'>]>([
    ['a page', { body: '<h1>no</h1>' }],
    ['an unknown code', { body: { error: { code: 'odd', message: 'no' } } }],
    ['the code of another status', { body: { error: { code: 'RATE_LIMITED' satisfies ProblemCode } } }],
    ['a body that is cut', { cut: true }],
  ])('with %s', async (_, step) => {
    await failed({ ...step, status: 403 }, 5)
    await failed({ ...step, status: 409 }, 3)
  })
})

describe('edge 8: a 429 other than USAGE_EXCEEDED is sent again', () => {
  const waits: [string, Step[], number[]][] = [
    ['once: after 1 s', [RATE_LIMITED, CREATED], [0, 1_000]],
    ['twice: after 1 and 2 s', [RATE_LIMITED, RATE_LIMITED, CREATED], [0, 1_000, 3_000]],
    [
      'three times: after 1, 2 and 4 s',
      [RATE_LIMITED, RATE_LIMITED, RATE_LIMITED, CREATED],
      [0, 1_000, 3_000, 7_000],
    ],
    ['without a code', [{ status: 429 }, CREATED], [0, 1_000]],
    ['with another code', [problem(429, 'odd'), CREATED], [0, 1_000]],
    ['with a body that is cut', [{ status: 429, cut: true }, CREATED], [0, 1_000]],
  ]
  it.each(waits)('%s', async (_, steps, atMs) => {
    const sent = sending(steps)
    expect((await sent.result).id).toBe('r1')
    expect(sent.atMs).toEqual(atMs)
    expect(sent.retries.map(([, why]) => why)).toEqual(atMs.slice(1).map(() => 'rate-limited'))
  })

  const afterDate = (ms: number) => new Date(START_MS + ms).toUTCString()
  const wishes: [string, string, number][] = [
    ['seconds, longer than the step', '7', 7_000],
    ['seconds, shorter than the step', '0', 1_000],
    ['a fraction of seconds', '1.5', 1_500],
    ['a date', afterDate(12_000), 12_000],
    ['a date that has passed', afterDate(-12_000), 1_000],
    ['longer than 60 s', '3600', 60_000],
    ['a date after 60 s', afterDate(3_600_000), 60_000],
    ['more digits than a number holds', '9'.repeat(400), 60_000],
    ['garbage', 'later', 1_000],
    ['nothing', '', 1_000],
    ['a negative number', '-5', 1_000],
  ]
  it.each(wishes)('Retry-After: %s', async (_, wish, waitMs) => {
    const sent = sending([problem(429, 'RATE_LIMITED', { 'Retry-After': wish }), CREATED])
    await sent.result
    expect(sent.atMs).toEqual([0, waitMs])
    expect(sent.retries).toEqual([[waitMs, 'rate-limited']])
  })

  it('everything else under the key holds back meanwhile', async () => {
    const { client, clock, atMs, requests } = createBench([
      RATE_LIMITED,
      { status: 200, body: { status: 'going' } },
      CREATED,
    ])
    const create = client.create(BODY)
    await clock.advance(10)
    const look = client.get('other')
    await clock.runUntil(Promise.all([create, look]))
    expect(atMs).toEqual([0, 1_000, 1_000])
    expect(requests.map(({ method }) => method).toSorted()).toEqual(['GET', 'POST', 'POST'])
  })
})

describe('edge 9: a fourth 429 gives up', () => {
  it.each([
    ['RATE_LIMITED', RATE_LIMITED, 'RATE_LIMITED'],
    ['no code', { status: 429 }, 'service_error'],
    ['another code', problem(429, 'odd'), 'odd'],
  ])('%s: exit 7 after four requests in 7 s', async (_, step, code) => {
    const { error, atMs } = await failing([step, step, step, step])
    expect(error).toMatchObject({ code, exitCode: EXIT.rateLimited, httpStatus: 429 })
    expect(error.message).toMatch(nothingPaid)
    expect(atMs).toEqual([0, 1_000, 3_000, 7_000])
  })
})

describe('edge 10: a 5xx is never sent again', () => {
  it.each([500, 501, 502, 503, 504, 520, 599])('%i', async (status) => {
    const { error, requests } = await failing([problem(status, 'boom', { 'retry-after': '1' })])
    expect(error).toMatchObject({ code: 'submission_unknown', exitCode: 13, httpStatus: status })
    expect(error.message).toMatch(mayExist)
    expect(requests).toHaveLength(1)
  })

  it('not even when its body is cut', async () => {
    const { error, requests } = await failing([{ status: 503, cut: true }])
    expect([error.exitCode, error.httpStatus, requests.length]).toEqual([13, 503, 1])
  })
})

describe('edge 11: a lost answer is never asked for again', () => {
  it.each([
    ['a reset', lost()],
    ['a timeout', new HttpFailure('no response for 60 s', { sent: true })],
    [
      'bytes that are not HTTP',
      new HttpFailure('the response is not valid HTTP', { sent: true, isInvalidHttp: true }),
    ],
  ])('%s', async (_, step) => {
    const { error, requests } = await failing([step])
    expect(error).toMatchObject({ code: 'submission_unknown', exitCode: 13, httpStatus: undefined })
    expect(error.message).toContain(step.message)
    expect(error.message).toMatch(mayExist)
    expect(error.cause).toBe(step)
    expect(requests).toHaveLength(1)
  })
})

describe('edge 12: without a connection nothing left, so it is sent again', () => {
  it.each([
    ['once: after 1 s', [unconnected(), CREATED], [0, 1_000]],
    ['twice: after 1 and 2 s', [unconnected(), unconnected(), CREATED], [0, 1_000, 3_000]],
  ])('%s', async (_, steps, atMs) => {
    const sent = sending(steps)
    expect((await sent.result).id).toBe('r1')
    expect(sent.atMs).toEqual(atMs)
    expect(sent.retries.map(([, why]) => why)).toEqual(atMs.slice(1).map(() => 'unconnected'))
  })
})

describe('edge 13: a third time without a connection gives up', () => {
  it('exit 9 after three requests in 3 s', async () => {
    const { error, atMs } = await failing([unconnected(), unconnected(), unconnected()])
    expect(error).toMatchObject({ code: 'network', exitCode: EXIT.network })
    expect(error.message).toContain('api.test')
    expect(error.message).toMatch(nothingPaid)
    expect(atMs).toEqual([0, 1_000, 3_000])
  })
})

describe('edge 14: each reason to send again has its own count', () => {
  const mixed: [string, Step[], number[], number | 'r1'][] = [
    [
      'no connection, then accepted after a 429',
      [unconnected(), RATE_LIMITED, CREATED],
      [0, 1_000, 2_000],
      'r1',
    ],
    [
      'both to their ends, and then accepted',
      [unconnected(), RATE_LIMITED, unconnected(), RATE_LIMITED, RATE_LIMITED, CREATED],
      [0, 1_000, 2_000, 4_000, 6_000, 10_000],
      'r1',
    ],
    [
      'a third time without a connection, between 429s',
      [unconnected(), RATE_LIMITED, unconnected(), RATE_LIMITED, unconnected()],
      [0, 1_000, 2_000, 4_000, 6_000],
      9,
    ],
    [
      'a fourth 429, after no connection',
      [unconnected(), RATE_LIMITED, RATE_LIMITED, RATE_LIMITED, RATE_LIMITED],
      [0, 1_000, 2_000, 4_000, 8_000],
      7,
    ],
    ['a lost answer after a 429', [RATE_LIMITED, lost()], [0, 1_000], 13],
    ['a 5xx after no connection', [unconnected(), { status: 502 }], [0, 1_000], 13],
    ['a refusal after a 429', [RATE_LIMITED, problem(402, 'insufficient_balance')], [0, 1_000], 5],
    ['an exhausted quota after a 429', [RATE_LIMITED, problem(429, 'USAGE_EXCEEDED')], [0, 1_000], 5],
    ['a redirect after no connection', [unconnected(), { status: 307 }], [0, 1_000], 8],
    ['a 201 without an id after a 429', [RATE_LIMITED, { status: 201 }], [0, 1_000], 13],
  ]
  it.each(mixed)('%s', async (_, steps, atMs, end) => {
    const sent = sending(steps)
    if (end === 'r1') expect((await sent.result).id).toBe('r1')
    else expect(await rejection(sent.result)).toMatchObject({ exitCode: end })
    expect(sent.atMs).toEqual(atMs)
  })
})

describe('edge 15: an abort ends it with its own reason', () => {
  const reason = new RushesError('interrupted', 'a signal', { exitCode: EXIT.sigterm })

  it('before anything is sent', async () => {
    const { result, requests } = sending([CREATED], {}, AbortSignal.abort(reason))
    expect(await rejection(result)).toBe(reason)
    expect(requests).toHaveLength(0)
  })

  it.each([
    ['while the answer is awaited', 'hang' as const],
    ['while it waits to be sent again', RATE_LIMITED],
  ])('%s', async (_, step) => {
    const { client, clock, requests } = createBench([step, CREATED])
    const stop = new AbortController()
    const created = rejection(client.create(BODY, { signal: stop.signal }))
    await clock.advance(500)
    stop.abort(reason)
    expect(await created).toBe(reason)
    await clock.advance(60_000)
    expect(requests).toHaveLength(1)
  })

  it('while it waits for its turn under the limit', async () => {
    const { client, clock, requests } = createBench([CREATED], { forever: true })
    await clock.runUntil(Promise.all(Array.from({ length: 20 }, () => client.create(BODY))))
    const stop = new AbortController()
    const created = rejection(client.create(BODY, { signal: stop.signal }))
    await clock.advance(500)
    stop.abort(reason)
    expect(await created).toBe(reason)
    await clock.advance(60_000)
    expect(requests).toHaveLength(20)
  })
})

describe('beforeSend', () => {
  it('stands between the grant and every sending', async () => {
    const { client, clock, atMs } = createBench([RATE_LIMITED, unconnected(), CREATED])
    const calls: number[] = []
    await clock.runUntil(client.create(BODY, { beforeSend: () => void calls.push(clock.monotonic()) }))
    expect(calls).toEqual(atMs)
  })

  it('that throws keeps the create from being sent, and gives its place back', async () => {
    const { client, clock, requests } = createBench([CREATED], { forever: true })
    const error = new Error('the disk is full')
    const beforeSend = () => Promise.reject(error)
    expect(await rejection(clock.runUntil(client.create(BODY, { beforeSend })))).toBe(error)
    expect(requests).toHaveLength(0)
    await clock.advance(10_000)
    await clock.runUntil(Promise.all(Array.from({ length: 20 }, () => client.create(BODY))))
    expect(clock.monotonic()).toBe(10_000)
  })
})
