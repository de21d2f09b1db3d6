/** Waiting: the interval between status requests, the patience with errors, and what ends a wait. */
import { expect, it } from 'vitest'
import { EXIT, RushesError } from '../../src/errors.js'
import { pollWindow } from '../../src/runs/follow.js'
import { states, wait } from '../../src/runs/wait.js'
import { createBench, lost, rejection, type Step } from '../client/wire.js'
import type { Scripted } from '../support/index.js'

const GOING: Scripted = { status: 200, body: { status: 'processing' } }
const DONE: Scripted = {
  status: 200,
  body: { status: 'succeeded', output: { urls: ['https://cdn.test/1'] } },
}
const FAILED: Scripted = { status: 200, body: { status: 'failed' } }
const BROKEN: Scripted = { status: 500 }
const random = () => 0

it.each([
  ['idle', 0, 1_000, 1_050],
  ['less than a quarter of the budget', 0.2, 1_000, 1_050],
  ['a quarter', 0.25, 1_000, 2_000],
  ['half of the budget', 0.5, 1_000, 2_000],
  ['three quarters', 0.75, 2_500, 3_500],
  ['all of it', 1, 4_000, 5_000],
])('the interval between status requests follows the budget in use: %s', (_, load, min, max) => {
  expect(pollWindow(load)).toEqual({ min, max })
})

it('the interval between status requests takes 1 to 1.05 s, and 1 to 2 s from a quarter of the budget', async () => {
  const dice = [0, 0.5, 1, 0.5, 0.5, 0.5]
  const { client, clock, atMs } = createBench([GOING, GOING, GOING, GOING, GOING, GOING, DONE])
  const options = { client, clock, random: () => dice.shift() ?? 0 }
  await clock.runUntil(wait(options, 'r1', { createdAtMs: 0 }))
  expect(atMs).toEqual([1_000, 2_000, 3_025, 4_075, 5_100, 6_600, 8_100])
})

it.each([
  ['1 s after the create of this process, not after the begin of the wait', 0, 1_000],
  ['at once for a run that another process created', undefined, 700],
])('a wait sends its first status request %s', async (_, createdAtMs, firstAtMs) => {
  const { client, clock, atMs } = createBench([DONE])
  await clock.advance(700)
  await clock.runUntil(wait({ client, clock, random }, 'r1', { createdAtMs }))
  expect(atMs).toEqual([firstAtMs])
})

it('a wait yields every state, the last one final', async () => {
  const { client, clock } = createBench([GOING, GOING, FAILED])
  const seen: string[] = []
  const watching = async () => {
    for await (const { status } of states({ client, clock, random }, 'r1')) seen.push(status)
  }
  await clock.runUntil(watching())
  expect(seen).toEqual(['processing', 'processing', 'failed'])
})

it('a wait leaves no timer behind when it is left early', async () => {
  const { client, clock, requests } = createBench([GOING, GOING])
  const first = async () => {
    for await (const state of states({ client, clock, random }, 'r1', { timeoutMs: 60_000 }))
      return state.status
  }
  expect(await clock.runUntil(first())).toBe('processing')
  await clock.advance(120_000)
  expect([clock.sleepers, requests.length]).toEqual([0, 1])
})

it('a wait reports errors of the service and continues', async () => {
  const { client, clock, atMs } = createBench([BROKEN, lost(), GOING, BROKEN, DONE])
  const told: string[] = []
  await clock.runUntil(wait({ client, clock, random }, 'r1', { onTrouble: ({ code }) => told.push(code) }))
  expect(told).toEqual(['service_error', 'network', 'service_error'])
  expect(atMs).toEqual([0, 1_000, 3_000, 4_000, 5_000])
})

// Every other answer, and when the patience is exhausted: follow.test.ts.
it('a wait without a valid response ends at the first request after two minutes', async () => {
  const { client, clock, atMs } = createBench([BROKEN], { forever: true })
  const error = await rejection(clock.runUntil(wait({ client, clock, random }, 'r1')))
  expect(error).toMatchObject({ code: 'service_error', exitCode: EXIT.serviceBroken, runId: 'r1' })
  expect(String(error)).toContain('No valid response for two minutes')
  expect(atMs.slice(0, 6)).toEqual([0, 1_000, 3_000, 7_000, 15_000, 23_000])
  expect(atMs.at(-1)).toBe(127_000)
})

const limit = { code: 'wait_timeout', exitCode: EXIT.waitTimeout, runId: 'r1' }
const unanswered = { code: 'network', runId: 'r1' }

// The last step repeats. `fromMs`: begin of the wait after the create, undefined: another process created the run.
it.each<
  [
    title: string,
    steps: readonly Step[],
    timeoutMs: number,
    fromMs: number | undefined,
    atMs: readonly number[],
    endsAtMs: number,
    error: object,
  ]
>([
  ['between status requests', [GOING], 2_500, undefined, [0, 1_000, 2_000, 2_500], 2_500, limit],
  [
    'a second later while a status request hangs',
    [GOING, 'hang'],
    5_000,
    undefined,
    [0, 1_000],
    6_000,
    limit,
  ],
  [
    'with the error of a service that answered no request',
    ['hang'],
    5_000,
    undefined,
    [0],
    6_000,
    unanswered,
  ],
  ['counted from the call', [GOING], 1_500, 4_000, [4_000, 5_000, 5_500], 5_500, limit],
  ['after a millisecond', [GOING], 1, undefined, [0, 1], 1, { message: 'r1 is still running after 1 ms.' }],
  [
    'after more seconds',
    [GOING],
    1_500,
    0,
    [1_000, 1_500],
    1_500,
    { message: 'r1 is still running after 2 s.' },
  ],
])('the wait limit ends a wait %s', async (_, steps, timeoutMs, fromMs, atMs, endsAtMs, error) => {
  const { client, clock, ...wire } = createBench(steps, { forever: true })
  const told: RushesError[] = []
  await clock.advance(fromMs ?? 0)
  const options = {
    timeoutMs,
    createdAtMs: fromMs === undefined ? undefined : 0,
    onTrouble: (trouble: RushesError) => void told.push(trouble),
  }
  let endedAtMs: number | undefined
  const waited = rejection(wait({ client, clock, random }, 'r1', options)).finally(() => {
    endedAtMs = clock.monotonic()
  })
  await clock.advance(60_000)
  expect(await waited).toMatchObject(error)
  expect([endedAtMs, wire.atMs, told]).toEqual([endsAtMs, atMs, []])
})

it('the wait limit ends no wait when none is given', async () => {
  const { client, clock } = createBench(['hang'])
  let isOver = false
  wait({ client, clock, random }, 'r1').finally(() => {
    isOver = true
  })
  await clock.advance(24 * 3_600_000)
  expect(isOver).toBe(false)
})

const reason = new RushesError('interrupted', 'a signal')

it.each<[string, Step]>([
  ['between status requests', GOING],
  ['while a status request hangs', 'hang'],
  ['between retries', BROKEN],
])('a signal %s ends the wait with its own reason', async (_, step) => {
  const { client, clock } = createBench([step, step], { forever: true })
  const stop = new AbortController()
  const told: RushesError[] = []
  const onTrouble = (error: RushesError) => told.push(error)
  const waited = rejection(
    wait({ client, clock, random }, 'r1', { signal: stop.signal, timeoutMs: 60_000, onTrouble }),
  )
  await clock.advance(500)
  stop.abort(reason)
  expect(await waited).toBe(reason)
  expect(told.map(({ code }) => code)).not.toContain('interrupted')
  expect(clock.sleepers).toBe(0)
})

it.each<[string, Step, object]>([
  ['ends with the state of a run that has ended', DONE, { phase: 'succeeded' }],
  ['ends at the limit if the run is still running', GOING, { code: 'wait_timeout' }],
])('a wait whose limit passed while the machine slept asks once more, and %s', async (_, third, end) => {
  const { client, clock, requests } = createBench([GOING, GOING, third])
  let nightMs = 0
  const sleepy = { ...clock, monotonic: () => clock.monotonic() + nightMs }
  const waited = wait({ client, clock: sleepy, random }, 'r1', { timeoutMs: 60_000 }).catch((error) => error)
  await clock.advance(1_500)
  nightMs = 8 * 3_600_000
  await clock.advance(60_000)
  expect(await waited).toMatchObject(end)
  expect(requests).toHaveLength(3)
})
