import { describe, expect, it } from 'vitest'
import type { Clock } from '../../src/host/clock.js'
import { Limiter } from '../../src/limiter/index.js'
import { RUNS_LIMIT } from '../../src/protocol/limits.js'
import { createManualClock } from '../support/index.js'
import { itKeepsTheLimit } from './window-tests.js'

const { requests: LIMIT } = RUNS_LIMIT

function createBench() {
  const clock = createManualClock()
  const sleeps: number[] = []
  const counting: Clock = {
    ...clock,
    sleep(ms, signal) {
      sleeps.push(ms)
      return clock.sleep(ms, signal)
    },
  }
  return { clock, sleeps, limiter: new Limiter(counting) }
}

/** Takes slots one after the other; the grants come in the order of their names. */
const take = (limiter: Limiter, count: number = LIMIT) =>
  Promise.all(Array.from({ length: count }, () => limiter.acquire('status')))

/** Takes slots whose requests are answered at once. */
async function fill(limiter: Limiter, count?: number): Promise<void> {
  for (const grant of await take(limiter, count)) grant.settle()
}

describe('a limiter', () => {
  itKeepsTheLimit(() => {
    const { clock, limiter } = createBench()
    return { clock, limiters: [limiter] }
  }, 25)

  it('grants creates before status requests, each in the order of asking', async () => {
    const { clock, limiter } = createBench()
    await fill(limiter)
    const order: string[] = []
    const asked = ['status 1', 'status 2', 'create 1', 'status 3', 'create 2'].map(async (name) => {
      await limiter.acquire(name.startsWith('create') ? 'create' : 'status')
      order.push(name)
    })
    await clock.runUntil(Promise.all(asked))
    expect(order).toEqual(['create 1', 'create 2', 'status 1', 'status 2', 'status 3'])
  })

  it('leaves spare slots to creates', async () => {
    const { clock, limiter } = createBench()
    await take(limiter, LIMIT - 3)
    limiter.spareForCreates = 2
    await take(limiter, 1)
    let isAsked = false
    limiter.acquire('status').then(() => {
      isAsked = true
    })
    await Promise.all([limiter.acquire('create'), limiter.acquire('create')])
    await clock.advance(0)
    expect(isAsked).toBe(false)
  })

  it.each<[string, taken: number, before: number[], after: number[], leavesAtMs: number]>([
    ['grants nothing, though slots are free', 0, [4_000], [], 4_000],
    ['is not shortened by another', 0, [4_000, 1_000], [], 4_000],
    ['applies to requests that wait already', LIMIT, [], [15_000], 15_000],
    ['adds nothing to a longer wait under the limit', LIMIT, [4_000], [], 10_000],
  ])('with a hold: it %s', async (_title, taken, before, after, leavesAtMs) => {
    const { clock, limiter } = createBench()
    await fill(limiter, taken)
    for (const ms of before) limiter.holdBack(ms)
    const left = limiter.acquire('create')
    for (const ms of after) limiter.holdBack(ms)
    await clock.runUntil(left)
    expect(clock.monotonic()).toBe(leavesAtMs)
  })

  it('gives the slot of one who waits and aborts to the next one', async () => {
    const { clock, limiter } = createBench()
    await fill(limiter)
    const stop = new AbortController()
    const reason = new Error('enough')
    const first = expect(limiter.acquire('status', stop.signal)).rejects.toBe(reason)
    const second = limiter.acquire('status')
    await clock.advance(1_000)
    stop.abort(reason)
    await first
    await clock.runUntil(second)
    expect([clock.monotonic(), limiter.load()]).toEqual([10_000, 1 / LIMIT])
  })

  it('waits with one timer, which is set again only when something changes', async () => {
    const { clock, limiter, sleeps } = createBench()
    await fill(limiter)
    const waiting = Array.from({ length: 5 }, () => limiter.acquire('status'))
    await clock.advance(0)
    expect(clock.sleepers).toBe(1)
    await clock.runUntil(Promise.all(waiting))
    expect(sleeps).toEqual([10_000])
  })

  it('waits for a response without a timer', async () => {
    const { clock, limiter, sleeps } = createBench()
    await take(limiter)
    void limiter.acquire('status')
    await clock.advance(0)
    expect([clock.sleepers, sleeps]).toEqual([0, []])
  })
})
