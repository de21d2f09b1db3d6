/** Waiting: the interval between status requests, the patience with errors, and what ends a wait. */
import { describe, expect, it } from 'vitest'
import { EXIT, RushesError } from '../../src/errors.js'
import { Limiter } from '../../src/limiter/index.js'
import { beginFollow, follow, pollWindow } from '../../src/runs/follow.js'
import { states, wait } from '../../src/runs/wait.js'
import { createBench, lost, problem, rejection, type Step } from '../client/wire.js'
import { createManualClock } from '../support/clock.js'
import type { Scripted } from '../support/responses.js'

const GOING: Scripted = { status: 200, body: { status: 'processing' } }
const DONE: Scripted = {
  status: 200,
  body: { status: 'succeeded', output: { urls: ['https://cdn.test/1'] } },
}
const FAILED: Scripted = { status: 200, body: { status: 'failed' } }
const BROKEN: Scripted = { status: 500 }

/** A limiter that grants every request at once. */
function unlimited(load: number): Limiter {
  const limiter = new Limiter(createManualClock())
  return Object.assign(limiter, { acquire: async () => ({ settle() {} }), load: () => load })
}

describe('the interval between status requests', () => {
  it.each([
    ['idle', 0, 1_000, 1_200],
    ['less than a quarter of the budget', 0.2, 1_000, 1_200],
    ['a quarter', 0.25, 1_000, 2_000],
    ['half of the budget', 0.5, 1_000, 2_000],
    ['three quarters', 0.75, 2_500, 3_500],
    ['all of it', 1, 4_000, 5_000],
  ])('follows the budget in use: %s', (_, load, min, max) => {
    expect(pollWindow(load)).toEqual({ min, max })
  })

  it('begins 1 s after the create, then takes 1 to 1.2 s, and 1 to 2 s from a quarter of the budget', async () => {
    const dice = [0, 0.5, 1, 0.5, 0.5, 0.5]
    const { client, clock, atMs } = createBench([GOING, GOING, GOING, GOING, GOING, GOING, DONE])
    const random = () => dice.shift() ?? 0
    await clock.runUntil(wait({ client, clock, random }, 'r1', { createdAtMs: 0 }))
    expect(atMs).toEqual([1_000, 2_000, 3_100, 4_300, 5_400, 6_900, 8_400])
  })

  it('counts the first second from the create, not from the wait', async () => {
    const { client, clock, atMs } = createBench([DONE])
    await clock.advance(700)
    await clock.runUntil(wait({ client, clock, random: () => 0 }, 'r1', { createdAtMs: 0 }))
    expect(atMs).toEqual([1_000])
  })

  it('sends the first request at once for a run that another process created', async () => {
    const { client, clock, atMs } = createBench([DONE])
    await clock.advance(700)
    await clock.runUntil(wait({ client, clock, random: () => 0 }, 'r1'))
    expect(atMs).toEqual([700])
  })
})

describe('a wait', () => {
  it('yields every state, the last one final', async () => {
    const { client, clock } = createBench([GOING, GOING, FAILED])
    const seen: string[] = []
    const watching = async () => {
      for await (const { status } of states({ client, clock, random: () => 0 }, 'r1')) seen.push(status)
    }
    await clock.runUntil(watching())
    expect(seen).toEqual(['processing', 'processing', 'failed'])
  })

  it('leaves no timer behind when it is left early', async () => {
    const { client, clock, requests } = createBench([GOING, GOING])
    const first = async () => {
      for await (const state of states({ client, clock, random: () => 0 }, 'r1', { timeoutMs: 60_000 }))
        return state.status
    }
    expect(await clock.runUntil(first())).toBe('processing')
    await clock.advance(120_000)
    expect([clock.sleepers, requests.length]).toEqual([0, 1])
  })

  it('reports errors of the service and continues', async () => {
    const { client, clock, atMs } = createBench([BROKEN, lost(), GOING, BROKEN, DONE])
    const told: string[] = []
    await clock.runUntil(
      wait({ client, clock, random: () => 0 }, 'r1', { onTrouble: ({ code }) => told.push(code) }),
    )
    expect(told).toEqual(['service_error', 'network', 'service_error'])
    expect(atMs).toEqual([0, 1_000, 3_000, 4_000, 5_000])
  })
})

// Every other answer, and what follows from it: follow.test.ts.
it('a wait ends at once with the refusal of the service, and names the run', async () => {
  const { client, clock, requests } = createBench([GOING, problem(429, 'USAGE_EXCEEDED')])
  const error = await rejection(clock.runUntil(wait({ client, clock, random: () => 0 }, 'r1')))
  expect(error).toMatchObject({ code: 'USAGE_EXCEEDED', exitCode: EXIT.account, runId: 'r1' })
  expect(requests).toHaveLength(2)
})

describe('patience', () => {
  it.each([
    ['five tries in three minutes', 5, 36_000, false],
    ['six tries in three minutes', 6, 36_000, true],
    ['six tries in two minutes', 6, 20_000, true],
    ['six tries in a little less', 6, 19_999, false],
    ['a hundred tries in a second', 100, 10, false],
    ['one try and a night', 1, 8 * 3_600_000, false],
    ['five tries after a night each, which count as 75 s', 5, 8 * 3_600_000, false],
    ['a clock that went back', 6, -60_000, false],
  ])('is exhausted by six failures and two minutes: %s: %i × %i ms → %s', (_, count, eachMs, exhausted) => {
    const error = new RushesError('service_error', 'no', { httpStatus: 500 })
    let known = beginFollow(undefined, 0)
    const steps = Array.from({ length: count }, (_each, at) => {
      const outcome = { kind: 'error', error, retryAfterMs: 0 } as const
      const { after, step } = follow(known, outcome, { nowMs: (at + 1) * eachMs, load: 0 })
      known = after
      return step.is
    })
    expect(steps.at(-1)).toBe(exhausted ? 'gave up' : 'again')
  })

  it('ends a wait without a valid response at the first request after two minutes', async () => {
    const { client, clock, atMs } = createBench([BROKEN], { forever: true })
    const error = await rejection(clock.runUntil(wait({ client, clock, random: () => 0 }, 'r1')))
    expect(error).toMatchObject({ code: 'service_error', exitCode: EXIT.serviceBroken, runId: 'r1' })
    expect(String(error)).toContain('No valid response for two minutes')
    expect(atMs.slice(0, 6)).toEqual([0, 1_000, 3_000, 7_000, 15_000, 23_000])
    expect(atMs.at(-1)).toBe(127_000)
  })
})

describe('the wait limit', () => {
  const limit = { code: 'wait_timeout', exitCode: EXIT.waitTimeout, runId: 'r1' }

  interface Limited {
    /** The last step repeats. */
    readonly steps: readonly Step[]
    readonly timeoutMs: number
    /** Default: the limit. */
    readonly endsAtMs?: number
    /** Starts the wait so long after the create. Undefined: another process created the run. */
    readonly afterCreateMs?: number
    /** Instants of the status requests. */
    readonly atMs: readonly number[]
    readonly error?: object
  }

  it.each<[string, Limited]>([
    ['between status requests', { steps: [GOING], timeoutMs: 2_500, atMs: [0, 1_000, 2_000, 2_500] }],
    [
      'a second later while a status request hangs',
      { steps: [GOING, 'hang'], timeoutMs: 5_000, endsAtMs: 6_000, atMs: [0, 1_000] },
    ],
    [
      'with the error of a service that answered no request',
      {
        steps: ['hang'],
        timeoutMs: 5_000,
        endsAtMs: 6_000,
        atMs: [0],
        error: { code: 'network', runId: 'r1' },
      },
    ],
    [
      'counted from the create',
      { steps: [GOING], timeoutMs: 5_000, afterCreateMs: 4_000, atMs: [4_000, 5_000] },
    ],
    ['at once if it has passed', { steps: [GOING], timeoutMs: 5_000, afterCreateMs: 6_000, atMs: [6_000] }],
    [
      'after a millisecond',
      { steps: [GOING], timeoutMs: 1, atMs: [0, 1], error: { message: 'r1 is still running after 1 ms.' } },
    ],
    [
      'after more seconds',
      {
        steps: [GOING],
        timeoutMs: 1_500,
        afterCreateMs: 0,
        atMs: [1_000, 1_500],
        error: { message: 'r1 is still running after 2 s.' },
      },
    ],
  ])('ends a wait %s', async (_, { steps, timeoutMs, afterCreateMs, endsAtMs, atMs, error = limit }) => {
    const { client, clock, ...wire } = createBench(steps, { forever: true })
    const told: RushesError[] = []
    await clock.advance(afterCreateMs ?? 0)
    const createdAtMs = afterCreateMs === undefined ? undefined : 0
    const onTrouble = (trouble: RushesError) => told.push(trouble)
    let endedAtMs: number | undefined
    const waited = rejection(
      wait({ client, clock, random: () => 0 }, 'r1', { timeoutMs, createdAtMs, onTrouble }),
    ).finally(() => {
      endedAtMs = clock.monotonic()
    })
    await clock.advance(60_000)
    expect(await waited).toMatchObject(error)
    expect([endedAtMs, wire.atMs, told]).toEqual([
      endsAtMs ?? Math.max(timeoutMs, afterCreateMs ?? 0),
      atMs,
      [],
    ])
  })

  it('ends no wait when none is given', async () => {
    const running = Array.from({ length: 150 }, () => GOING)
    const { client, clock, atMs } = createBench([...running, DONE], {
      limiter: unlimited(1),
    })
    expect((await clock.runUntil(wait({ client, clock, random: () => 0 }, 'r1'))).phase).toBe('succeeded')
    expect(atMs.at(-1)).toBe(600_000)
  })
})

describe('a signal', () => {
  const reason = new RushesError('interrupted', 'a signal')

  it.each<[string, Step]>([
    ['between status requests', GOING],
    ['while a status request hangs', 'hang'],
    ['between retries', BROKEN],
  ])('%s ends the wait with its own reason', async (_, step) => {
    const { client, clock } = createBench([step, step], { forever: true })
    const stop = new AbortController()
    const told: RushesError[] = []
    const onTrouble = (error: RushesError) => told.push(error)
    const waited = rejection(
      wait({ client, clock, random: () => 0 }, 'r1', { signal: stop.signal, timeoutMs: 60_000, onTrouble }),
    )
    await clock.advance(500)
    stop.abort(reason)
    expect(await waited).toBe(reason)
    expect(told.map(({ code }) => code)).not.toContain('interrupted')
    expect(clock.sleepers).toBe(0)
  })
})

describe('a wait whose limit passed while the machine slept', () => {
  const NIGHT_MS = 8 * 3_600_000

  /** The machine sleeps before the third status request. */
  async function waitThroughNight(steps: readonly Step[]) {
    const { client, clock, requests } = createBench(steps, { limiter: unlimited(0) })
    let nightMs = 0
    const sleepy = { ...clock, monotonic: () => clock.monotonic() + nightMs }
    const waited = wait({ client, clock: sleepy, random: () => 0 }, 'r1', { timeoutMs: 60_000 }).catch(
      (error: unknown) => error,
    )
    await clock.advance(1_500)
    nightMs = NIGHT_MS
    await clock.advance(60_000)
    return { result: await waited, requests: requests.length }
  }

  it('asks once more, and ends with the state of a run that has ended', async () => {
    expect((await waitThroughNight([GOING, GOING, DONE])).result).toMatchObject({
      phase: 'succeeded',
    })
  })

  it('ends at the limit if the run is still running', async () => {
    const { result, requests } = await waitThroughNight([GOING, GOING, GOING])
    expect([(result as RushesError).code, requests]).toEqual(['wait_timeout', 3])
  })
})
