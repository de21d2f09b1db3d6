/** One status request, and what each answer to it means. */
import { expect, it } from 'vitest'
import { MAX_ANSWER_BYTES } from '../../src/client/requests.js'
import { EXIT, RushesError } from '../../src/errors.js'
import { HttpFailure } from '../../src/host/http.js'
import { PROBLEMS } from '../../src/protocol/problems.js'
import type { Scripted } from '../support/index.js'
import {
  BASE_URL,
  type BenchOptions,
  createBench,
  lost,
  problem,
  rejection,
  type Step,
  unconnected,
} from './wire.js'

const URLS = ['https://cdn.test/1.png']
const run = (status: unknown, more: object = {}): Scripted => ({ status: 200, body: { status, ...more } })
const DONE = run('succeeded', { output: { urls: URLS } })

async function seen(steps: readonly Step[], options?: BenchOptions) {
  const bench = createBench(steps, options)
  return { ...bench, state: await bench.clock.runUntil(bench.client.get('r1')) }
}

async function refused(steps: readonly Step[], options?: BenchOptions) {
  const bench = createBench(steps, options)
  const error = await rejection(bench.clock.runUntil(bench.client.get('r1')))
  if (!(error instanceof RushesError)) throw error
  return { ...bench, error }
}

it('a run that succeeded without URLs requests its URLs after 1, 2 and 4 s, then returns the run with the reason', async () => {
  const { state, atMs } = await seen(Array(4).fill(run('succeeded')))
  expect(state).toMatchObject({ phase: 'succeeded', urls: [], withoutUrls: 'output.urls is missing' })
  expect(atMs).toEqual([0, 1_000, 3_000, 7_000])
})

it('a run that succeeded without URLs reports the run at its first response, and returns URLs that come later', async () => {
  const { client, clock } = createBench([run('succeeded'), run('succeeded'), DONE])
  const reported: unknown[] = []
  const state = await clock.runUntil(
    client.get('r1', undefined, ({ withoutUrls }) => reported.push([clock.monotonic(), withoutUrls])),
  )
  expect([state.urls, state.withoutUrls]).toEqual([URLS, undefined])
  expect(reported).toEqual([[0, 'output.urls is missing']])
})

const { serviceBroken, network, rateLimited } = EXIT
it.each<[string, Step, number]>([
  ['no status', { status: 200, body: {} }, serviceBroken],
  ['a page', { status: 200, body: '<h1>hello</h1>' }, serviceBroken],
  ['nothing', { status: 204 }, serviceBroken],
  ['more than 8 MiB', { status: 200, body: Buffer.alloc(MAX_ANSWER_BYTES + 1, ' ') }, serviceBroken],
  ['invalid UTF-8', { status: 200, body: Buffer.from([0xff, 0xfe, 0x7b]) }, serviceBroken],
  ['a redirect without an address', { status: 302 }, serviceBroken],
  ['not modified', { status: 304 }, serviceBroken],
  ['no connection', unconnected(), network],
  ['a lost answer', lost(), network],
  ['a body that is cut', { ...DONE, cut: true }, network],
  ['bytes that are not HTTP', new HttpFailure('no', { sent: true, isInvalidHttp: true }), serviceBroken],
  ['500', problem(500, undefined), serviceBroken],
  ['503', { status: 503, body: '<h1>busy</h1>' }, serviceBroken],
  ['429 RATE_LIMITED', problem(429, 'RATE_LIMITED'), rateLimited],
  ['429 without a code', { status: 429 }, rateLimited],
])(
  'an error that may pass is requested again after 1, 2 and 4 s, then it is the error: %s',
  async (_, step, exitCode) => {
    const { error, atMs } = await refused([step, step, step, step])
    expect(error).toMatchObject({ exitCode, runId: 'r1' })
    expect(atMs).toEqual([0, 1_000, 3_000, 7_000])
  },
)

it.each([
  [503, '9', 9_000],
  [429, '9', 9_000],
  [429, '0', 1_000],
])('an error that may pass is requested again as Retry-After says: %i, %s', async (status, wish, waitMs) => {
  const { atMs } = await seen([problem(status, 'busy', { 'retry-after': wish }), DONE])
  expect(atMs).toEqual([0, waitMs])
})

it('a 429 of one status request holds every other back', async () => {
  const { client, clock, atMs } = createBench([
    problem(429, 'RATE_LIMITED', { 'retry-after': '5' }),
    DONE,
    DONE,
  ])
  const first = client.get('a')
  await clock.advance(100)
  await clock.runUntil(Promise.all([first, client.get('b')]))
  expect(atMs).toEqual([0, 5_000, 5_000])
})

const documented = Object.entries(PROBLEMS).filter(([code]) => code !== 'RATE_LIMITED')
it.each(documented)('a refusal is final: %s', async (code, { status, exit, hint }) => {
  const { error, requests } = await refused([problem(status, code)])
  expect(error).toMatchObject({ code, exitCode: exit, httpStatus: status, hint, runId: 'r1' })
  expect(requests).toHaveLength(1)
})

it.each([
  [400, 3],
  [401, 4],
  [402, 5],
  [403, 5],
  [404, 3],
  [410, 3],
  [418, 3],
])('a refusal is final: %i without a code is exit %i', async (status, exitCode) => {
  const { error, requests } = await refused([{ status, body: '<h1>no</h1>' }])
  expect(error).toMatchObject({ code: 'service_error', exitCode, httpStatus: status, runId: 'r1' })
  expect(requests).toHaveLength(1)
})

const to = (location: string, status = 302): Scripted => ({ status, headers: { Location: location } })

it.each(['/elsewhere/r1', 'https://api.test/elsewhere/r1', '//api.test:443/elsewhere/r1'])(
  'a redirect to %s is followed: the origin is the same',
  async (location) => {
    const { requests, state } = await seen([to(location), DONE])
    expect(requests.map(({ url }) => url.href)).toEqual([
      `${BASE_URL}/api/v1/runs/r1`,
      'https://api.test/elsewhere/r1',
    ])
    expect(state.id).toBe('r1')
  },
)

it.each([
  'https://evil.test/api/v1/runs/r1',
  'http://api.test/api/v1/runs/r1',
  'https://api.test:8443/',
  '//evil.test/',
  'https://',
  'file:///etc/passwd',
  'data:application/json,{}',
])('a redirect to %s is refused', async (location) => {
  const step = to(location, 307)
  const { error, requests } = await refused([step, step, step, step])
  expect(error).toMatchObject({ code: 'bad_response', exitCode: 8, httpStatus: 307, runId: 'r1' })
  expect(new Set(requests.map(({ url }) => url.origin))).toEqual(new Set(['https://api.test']))
  expect(requests).toHaveLength(4)
})

it('a redirect without end ends after five', async () => {
  const { error, requests } = await refused([to('')], { forever: true })
  expect(error).toMatchObject({ code: 'bad_response', exitCode: 8 })
  expect(error.message).toContain('more than 5 times')
  expect(requests).toHaveLength(4 * 6)
})

// During a request: wait.test.ts.
it('an abort between two tries ends a status request with its own reason', async () => {
  const { client, clock, requests } = createBench([{ status: 500 }, DONE])
  const stop = new AbortController()
  const looked = rejection(client.get('r1', stop.signal))
  await clock.advance(500)
  const reason = new RushesError('interrupted', 'a signal')
  stop.abort(reason)
  expect(await looked).toBe(reason)
  expect(requests).toHaveLength(1)
})
