/**
 * The scheduler with the real limiter, in time that is moved by hand: what it does where nothing is as it should be. A
 * service is a list of how long its runs take, and counts as the real one does.
 */
import { describe, expect, it } from 'vitest'
import { createLimiter } from '../../src/limiter/index.js'
import { RUNS_LIMIT } from '../../src/protocol/limits.js'
import { type Polled, runSchedule, type Task } from '../../src/runs/schedule.js'
import { createMemoryRateLimiter } from '../../src/service/rate/rate-limiter.js'
import { createManualClock } from '../support/clock.js'

interface World {
  /** How long each run takes; NaN: it never ends. */
  readonly durations: readonly number[]
  readonly learned?: readonly number[]
  /** How long an answer takes at a moment. */
  latencyMs?(nowMs: number): number
  /** Whether the service is out of order at a moment. */
  isBroken?(nowMs: number): boolean
  /** Requests of another process under the same limit. */
  neighbour?(
    limiter: ReturnType<typeof createLimiter>,
    clock: ReturnType<typeof createManualClock>,
  ): Promise<void>
}

async function play(world: World) {
  const { durations, learned = [], latencyMs = () => 50, isBroken = () => false } = world
  const clock = createManualClock()
  const beganMs = clock.monotonic()
  const since = () => clock.monotonic() - beganMs
  const limiter = createLimiter(clock)
  const service = createMemoryRateLimiter(clock)
  const doneAt = new Map<number, number>()
  const noticedAt = new Map<number, number>()
  const looks: number[] = durations.map(() => 0)
  const turnedAway: number[] = []

  async function ask(purpose: 'create' | 'status'): Promise<boolean> {
    const grant = await limiter.acquire(purpose)
    await clock.sleep(latencyMs(since()) / 2)
    if (!(await service.take(['key'], RUNS_LIMIT))) turnedAway.push(since())
    const isGood = !isBroken(since())
    await clock.sleep(latencyMs(since()) / 2)
    grant.settle()
    return isGood
  }

  const tasks = durations.map((ms, run): Task => {
    let troubles = 0
    return {
      group: 'one',
      async create() {
        await ask('create')
        doneAt.set(run, since() + ms)
        return clock.monotonic()
      },
      async poll({ isUrgent }): Promise<Polled> {
        looks[run] = (looks[run] ?? 0) + 1
        if (!(await ask(isUrgent ? 'create' : 'status')))
          return { is: 'error', againInMs: Math.min(8_000, 1_000 * 2 ** troubles++) }
        troubles = 0
        if (!((doneAt.get(run) ?? Number.NaN) <= since() - 25))
          return { is: 'running', next: { soonestMs: 1_000, latestMs: 2_000 } }
        noticedAt.set(run, since())
        return { is: 'over', durationMs: ms }
      },
    }
  })
  const work = runSchedule({
    tasks,
    clock,
    limit: RUNS_LIMIT,
    load: limiter.load,
    durationsOf: () => learned,
    random: () => 0.5,
    mayCreate: () => true,
    signal: AbortSignal.timeout(2_000_000_000),
  })
  const both = Promise.all([work, world.neighbour?.(limiter, clock)])
  await clock.runUntil(both)
  const delays = [...noticedAt].map(([run, at]) => at - (doneAt.get(run) ?? 0))
  return {
    seconds: since() / 1_000,
    noticed: noticedAt.size,
    delay: delays.reduce((sum, each) => sum + each, 0) / delays.length / 1_000,
    looks: looks.reduce((sum, each) => sum + each, 0),
    mostLooks: Math.max(...looks),
    turnedAway,
  }
}

const every = (count: number, ms: (at: number) => number) => Array.from({ length: count }, (_, at) => ms(at))

describe('a schedule', () => {
  it('with nothing learned comes near to the floor, and is never turned away', async () => {
    const { seconds, noticed, turnedAway, looks } = await play({ durations: every(60, () => 4_000) })
    // 120 requests fit into 50 s and the window that the first of them opened.
    expect(seconds).toBeGreaterThanOrEqual(50)
    expect(seconds).toBeLessThan(54)
    expect({ noticed, turnedAway }).toEqual({ noticed: 60, turnedAway: [] })
    expect(looks).toBeLessThanOrEqual(66)
  })

  it('with a heavy tail notices the quick ones soon, and does not waste the limit on the slow ones', async () => {
    const durations = every(30, (at) => (at % 10 === 9 ? 300_000 : 6_000 + 100 * at))
    const { noticed, turnedAway, mostLooks, delay, seconds } = await play({ durations })
    expect({ noticed, turnedAway }).toEqual({ noticed: 30, turnedAway: [] })
    expect(seconds).toBeLessThan(325)
    // One a second, as a plain loop would, were 300.
    expect(mostLooks).toBeLessThan(220)
    expect(delay).toBeLessThan(10)
  })

  it('with wrong ideas of how long runs take still finds them', async () => {
    const tooLong = await play({ durations: every(10, () => 5_000), learned: every(20, () => 60_000) })
    // Nobody is looked at before 0.7 of the fastest; then everyone is.
    expect(tooLong.seconds).toBeLessThan(50)
    const tooShort = await play({ durations: every(10, () => 60_000), learned: every(20, () => 5_000) })
    expect(tooShort.seconds).toBeLessThan(70)
    expect([tooLong.turnedAway, tooShort.turnedAway]).toEqual([[], []])
  })

  it('with half of the limit gone to another process takes twice as long and no more', async () => {
    const durations = every(40, () => 4_000)
    const alone = await play({ durations })
    let isOver = false
    const shared = await play({
      durations,
      async neighbour(limiter, clock) {
        // As greedy as this one, and as many requests.
        for (let asked = 0; asked < 80 && !isOver; asked++) {
          const grant = await limiter.acquire('status')
          void clock.sleep(50).then(() => grant.settle())
          await clock.sleep(1)
        }
        isOver = true
      },
    })
    expect(shared.turnedAway).toEqual([])
    expect(shared.noticed).toBe(40)
    expect(shared.seconds).toBeLessThan(2.2 * alone.seconds + 10)
  })

  it('with a service that becomes slow sends no more than it can answer, and goes on as before', async () => {
    const slowly = (nowMs: number) => (nowMs > 5_000 && nowMs < 40_000 ? 6_000 : 50)
    const { noticed, turnedAway, seconds } = await play({
      durations: every(40, () => 4_000),
      latencyMs: slowly,
    })
    expect({ noticed, turnedAway }).toEqual({ noticed: 40, turnedAway: [] })
    expect(seconds).toBeLessThan(100)
  })

  it('with a service that fails for a while asks less often, and then finds everything', async () => {
    const isBroken = (nowMs: number) => nowMs > 12_000 && nowMs < 72_000
    const { noticed, mostLooks, seconds } = await play({ durations: every(10, () => 20_000), isBroken })
    expect(noticed).toBe(10)
    expect(seconds).toBeGreaterThan(72)
    expect(seconds).toBeLessThan(90)
    // After 1, 2, 4, 8, 8 … s each: ten in that minute, where looking on once a second would have been sixty.
    expect(mostLooks).toBeLessThanOrEqual(14)
  })
})
