/** Which create may be sent twice: a row for every outcome. Where an id is found in a response: run-state.test.ts. */
import { describe, expect, it } from 'vitest'
import { MAX_ANSWER_BYTES } from '../../src/client/requests.js'
import { EXIT, RushesError } from '../../src/errors.js'
import { HttpFailure } from '../../src/host/http.js'
import { PROBLEMS } from '../../src/protocol/problems.js'
import type { Scripted } from '../support/index.js'
import {
  BASE_URL,
  type Bench,
  type BenchOptions,
  createBench,
  KEY,
  lost,
  problem,
  rejection,
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
const UNKNOWN = { code: 'submission_unknown', exitCode: EXIT.outcomeUnknown }

describe('edge 1: a 201 with an id is the only success', () => {
  it.each<[string, Scripted, unknown, runIdField?: string]>([
    ['in its body', CREATED, { id: 'r1', body: { id: 'r1' } }],
    ['in its Location', { status: 201, headers: { Location: '/r1' } }, { id: 'r1', body: null }],
    [
      'in the Location beside a body that is not JSON',
      { status: 201, body: '<p>', headers: { location: 'r1' } },
      { id: 'r1', body: null },
    ],
    [
      'in a field after a number too large to be exact',
      { status: 201, body: '{"id":36893488147419103233,"run_id":"a"}' },
      { id: 'a' },
    ],
    [
      'as an integer of 64 bits, with all its digits',
      { status: 201, body: '{"id":18446744073709551615,"run_id":"a"}' },
      { id: '18446744073709551615' },
    ],
    [
      'in the field that runIdField names, before all others',
      { status: 201, body: { id: 'a', job: { uuid: 'own' } } },
      { id: 'own' },
      'job.uuid',
    ],
    ['elsewhere, if runIdField names no field', CREATED, { id: 'r1' }, 'job.uuid'],
  ])('%s', async (_, step, accepted, runIdField) => {
    const { result, requests } = sending([step], { runIdField })
    expect(await result).toMatchObject(accepted as object)
    expect(requests).toHaveLength(1)
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

describe('edge 2: a 201 that is cut off is accepted by what arrived', () => {
  const whole = { id: 'r9', status: 'queued' }
  it.each<[string, Omit<Scripted, 'status'>, unknown, runIdField?: string]>([
    ['its Location', { body: '{"id":', cut: true, headers: { location: '/api/v1/runs/r9' } }, null],
    ['the id', { body: '{"id":"r9","sta', cut: true }, null],
    [
      'the id where runIdField says',
      { body: '{"id":"x","job":{"uuid":"r9"},"x', cut: true },
      null,
      'job.uuid',
    ],
    ['the id, if the connection ended as if the body were whole', { body: '{"id":"r9","sta' }, null],
    ['the whole body, if only the end of the connection was wrong', { body: whole, cut: true }, whole],
    [
      'the id, if it is larger than 8 MiB',
      { body: Buffer.concat([Buffer.from('{"id":"r9","log":"'), Buffer.alloc(MAX_ANSWER_BYTES, 'x')]) },
      null,
    ],
  ])('%s', async (_, step, body, runIdField) => {
    const { result, requests } = sending([{ ...step, status: 201 }], { runIdField })
    expect(await result).toEqual({ id: 'r9', body })
    expect(requests).toHaveLength(1)
  })

  it('the id that arrived before a signal, and otherwise ends with the signal', async () => {
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

describe('a create that is sent once', () => {
  const PAID = { ...UNKNOWN, httpStatus: 201 }
  const LONG = 'x'.repeat(100_000)
  const INVALID = new HttpFailure('the response is not valid HTTP', { sent: true, isInvalidHttp: true })
  const lostAnswers = [lost(), new HttpFailure('no response for 60 s', { sent: true }), INVALID]
  const refusals = Object.entries(PROBLEMS).filter(([code]) => code !== 'RATE_LIMITED')

  it.each<[string, Step, object, RegExp]>([
    [
      'edge 3: 201 without an id',
      { status: 201, body: { job: 'x' } },
      PAID,
      /and costs money\. .*\{"job":"x"\}$/,
    ],
    [
      'edge 3: 201 with a page',
      { status: 201, body: '<p>\u001b[31mhi' },
      PAID,
      /costs money\. .* <p>\[31mhi$/,
    ],
    ['edge 3: 201 without a body', { status: 201 }, PAID, /exists and costs money\. .* \(empty\)$/],
    [
      'edge 3: 201 with a long body, which is shown whole',
      { status: 201, body: LONG },
      { ...PAID, message: expect.stringContaining(LONG) },
      /exists and costs money/,
    ],
    [
      'edge 3: 201 that is cut in the id',
      { status: 201, body: '{"id":"run_', cut: true },
      PAID,
      /broke off before the run id \(the body was cut\).* costs money\. Received: \{"id":"run_$/,
    ],
    [
      'edge 3: 201 that is cut in the API key, which is not shown',
      { status: 201, body: `{"echo":"Bearer ${KEY.slice(0, -3)}`, cut: true },
      PAID,
      /Received: \{"echo":"Bearer \[API key\]$/,
    ],
    ...[200, 202, 204, 226].map((httpStatus): [string, Step, object, RegExp] => [
      `edge 4: ${httpStatus}, whose outcome is unknown`,
      { status: httpStatus, body: { id: 'a' } },
      { ...UNKNOWN, httpStatus },
      mayExist,
    ]),
    ...[300, 301, 302, 304, 307, 308].map((httpStatus): [string, Step, object, RegExp] => [
      `edge 5: ${httpStatus}, which is not followed`,
      { status: httpStatus, headers: { location: `${BASE_URL}/api/v1/elsewhere` } },
      { code: 'bad_response', exitCode: EXIT.serviceBroken, httpStatus },
      /The run was not created/,
    ]),
    [
      'edge 5: 303, which names the result of a create that may have been carried out',
      { status: 303, headers: { location: '/api/v1/runs/r1' } },
      { ...UNKNOWN, httpStatus: 303 },
      /the service answered 303 to \/api\/v1\/runs\/r1, which does not show whether.*A run may exist and cost money\.$/,
    ],
    ...refusals.map(([code, { status, exit, hint }]): [string, Step, object, RegExp] => [
      `edge 6: ${code}`,
      problem(status, code, { 'retry-after': '1' }),
      {
        code,
        exitCode: exit,
        httpStatus: status,
        hint,
        message: expect.stringContaining(`${code} happened`),
      },
      nothingPaid,
    ]),
    ...[400, 404, 405, 409, 410, 415, 422, 451, 499].map((status): [string, Step, object, RegExp] => [
      `edge 7: ${status} without a code`,
      { status },
      { exitCode: EXIT.refused, httpStatus: status },
      nothingPaid,
    ]),
    ['edge 7: 401 without a code', { status: 401 }, { exitCode: EXIT.key }, nothingPaid],
    ['edge 7: 402 without a code', { status: 402 }, { exitCode: EXIT.account }, nothingPaid],
    [
      'edge 7: 403 with a page',
      { status: 403, body: '<h1>no</h1>' },
      { exitCode: EXIT.account },
      nothingPaid,
    ],
    ['edge 7: 403 with an unknown code', problem(403, 'odd'), { code: 'odd', exitCode: 5 }, nothingPaid],
    ['edge 7: 403 with the code of a 429', problem(403, 'RATE_LIMITED'), { exitCode: 5 }, nothingPaid],
    ['edge 7: 409 that is cut', { status: 409, cut: true }, { exitCode: EXIT.refused }, nothingPaid],
    [
      'edge 7: 413, which names the size, and a URL as the way out',
      { status: 413, body: '<h1>413 Request Entity Too Large</h1>' },
      { exitCode: EXIT.refused, hint: expect.stringContaining('http(s) URLs') },
      /The request body has \d+ B, which is too large.*nothing was paid for it\.$/,
    ],
    ...[408, 500, 501, 502, 503, 504, 520, 599].map((httpStatus): [string, Step, object, RegExp] => [
      `edge 10: ${httpStatus}, whose outcome is unknown`,
      problem(httpStatus, 'boom', { 'retry-after': '1' }),
      { ...UNKNOWN, httpStatus },
      mayExist,
    ]),
    ['edge 10: 503 that is cut', { status: 503, cut: true }, { ...UNKNOWN, httpStatus: 503 }, mayExist],
    ...lostAnswers.map((failure): [string, Step, object, RegExp] => [
      `edge 11: a lost answer (${failure.message})`,
      failure,
      {
        ...{ ...UNKNOWN, httpStatus: undefined, cause: failure },
        message: expect.stringContaining(failure.message),
      },
      mayExist,
    ]),
  ])('%s', async (_, step, expected, message) => {
    const { error, requests, retries } = await failing([step])
    expect(error).toMatchObject(expected)
    expect(error.message).toMatch(message)
    expect([requests.length, retries]).toEqual([1, []])
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
})

describe('a create that is sent again', () => {
  const unreached = (count: number) => Array.from({ length: count }, () => unconnected())
  const limited = (count: number, step: Step = RATE_LIMITED) => Array<Step>(count).fill(step)
  const wish = (retryAfter: string) => problem(429, 'RATE_LIMITED', { 'Retry-After': retryAfter })
  const inTwelveSeconds = new Date(START_MS + 12_000).toUTCString()

  it.each<[string, readonly Step[], readonly number[], end: 'r1' | number]>([
    [
      'edge 8: after 1, 2 and 4 s when it was rate limited',
      [...limited(3), CREATED],
      [0, 1_000, 3_000, 7_000],
      'r1',
    ],
    ['edge 8: after a 429 without a code', [{ status: 429 }, CREATED], [0, 1_000], 'r1'],
    ['edge 8: after a 429 with another code', [problem(429, 'odd'), CREATED], [0, 1_000], 'r1'],
    ['edge 8: after a 429 that is cut', [{ status: 429, cut: true }, CREATED], [0, 1_000], 'r1'],
    ['edge 8: as late as the service asks for', [wish('7'), CREATED], [0, 7_000], 'r1'],
    ['edge 8: or at the time that it names', [wish(inTwelveSeconds), CREATED], [0, 12_000], 'r1'],
    ['edge 8: but not before its own wait', [wish('0'), CREATED], [0, 1_000], 'r1'],
    ['edge 8: and after a minute at most', [wish('3600'), CREATED], [0, 60_000], 'r1'],
    ['edge 9: up to four 429s', limited(4), [0, 1_000, 3_000, 7_000], EXIT.rateLimited],
    ['edge 9: also without a code', limited(4, { status: 429 }), [0, 1_000, 3_000, 7_000], EXIT.rateLimited],
    ['edge 12: after 1 and 2 s without a connection', [...unreached(2), CREATED], [0, 1_000, 3_000], 'r1'],
    ['edge 13: up to three times without a connection', unreached(3), [0, 1_000, 3_000], EXIT.network],
    [
      'edge 14: each reason has its own count',
      [unconnected(), RATE_LIMITED, unconnected(), ...limited(2), CREATED],
      [0, 1_000, 2_000, 4_000, 6_000, 10_000],
      'r1',
    ],
    [
      'edge 14: a third time without a connection, between 429s',
      [unconnected(), RATE_LIMITED, unconnected(), RATE_LIMITED, unconnected()],
      [0, 1_000, 2_000, 4_000, 6_000],
      EXIT.network,
    ],
    [
      'edge 14: a fourth 429, after no connection',
      [unconnected(), ...limited(4)],
      [0, 1_000, 2_000, 4_000, 8_000],
      EXIT.rateLimited,
    ],
    ['edge 14: a lost answer after a 429', [RATE_LIMITED, lost()], [0, 1_000], 13],
    ['edge 14: a 5xx after no connection', [unconnected(), { status: 502 }], [0, 1_000], 13],
    ['edge 14: a refusal after a 429', [RATE_LIMITED, problem(402, 'insufficient_balance')], [0, 1_000], 5],
    [
      'edge 14: an exhausted quota after a 429',
      [RATE_LIMITED, problem(429, 'USAGE_EXCEEDED')],
      [0, 1_000],
      5,
    ],
    ['edge 14: a redirect after no connection', [unconnected(), { status: 307 }], [0, 1_000], 8],
    ['edge 14: a 201 without an id after a 429', [RATE_LIMITED, { status: 201 }], [0, 1_000], 13],
  ])('%s', async (_, steps, atMs, end) => {
    const sent = sending(steps)
    if (end === 'r1') expect((await sent.result).id).toBe('r1')
    else {
      const error = await rejection(sent.result)
      expect(error).toMatchObject({ exitCode: end })
      expect(nothingPaid.test((error as RushesError).message)).toBe(![8, 13].includes(end))
    }
    expect(sent.atMs).toEqual(atMs)
    const reasonOf = (step: Step | undefined) => (step instanceof Error ? 'unconnected' : 'rate-limited')
    expect(sent.retries).toEqual(
      atMs.slice(1).map((ms, index) => [ms - (atMs[index] ?? 0), reasonOf(steps[index])]),
    )
  })

  it('holds back every other request with the key', async () => {
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

  it('keeps the create from being sent when it throws, and gives its slot back', async () => {
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
