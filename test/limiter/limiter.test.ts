import { describe, expect, it } from 'vitest'
import type { Clock } from '../../src/host/clock.js'
import { Limiter, type Purpose } from '../../src/limiter/index.js'
import { RUNS_LIMIT } from '../../src/protocol/limits.js'
import { createManualClock, type ManualClock } from '../support/clock.js'
import { itKeepsTheLimit } from './window-tests.js'

const { requests: LIMIT } = RUNS_LIMIT

interface Bench {
  readonly clock: ManualClock
  readonly limiter: Limiter
  readonly sleeps: readonly number[]
}

describe('a limiter', () => {
  function createBench(): Bench {
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
  async function fill({ limiter }: Bench, count: number = LIMIT) {
    return await Promise.all(Array.from({ length: count }, () => limiter.acquire('status')))
  }

  itKeepsTheLimit(() => {
    const { clock, limiter } = createBench()
    return { clock, limiters: [limiter] }
  }, 25)

  describe('the order', () => {
    it('is: creates before status requests, each in the order of asking', async () => {
      const bench = createBench()
      for (const grant of await fill(bench)) grant.settle()
      const order: string[] = []
      const wanted: [Purpose, string][] = [
        ['status', 'status 1'],
        ['status', 'status 2'],
        ['create', 'create 1'],
        ['status', 'status 3'],
        ['create', 'create 2'],
      ]
      const all = wanted.map(async ([purpose, name]) => {
        await bench.limiter.acquire(purpose)
        order.push(name)
      })
      await bench.clock.runUntil(Promise.all(all))
      expect(order).toEqual(['create 1', 'create 2', 'status 1', 'status 2', 'status 3'])
    })
  })

  describe('spare slots', () => {
    it('are left to creates', async () => {
      const bench = createBench()
      await fill(bench, LIMIT - 3)
      bench.limiter.spareForCreates = 2
      await fill(bench, 1)
      let isAsked = false
      bench.limiter.acquire('status').then(() => {
        isAsked = true
      })
      await Promise.all([bench.limiter.acquire('create'), bench.limiter.acquire('create')])
      await bench.clock.advance(0)
      expect(isAsked).toBe(false)
    })
  })

  describe('holdBack', () => {
    it.each<[string, taken: number, before: number[], after: number[], leavesAtMs: number]>([
      ['grants nothing, though slots are free', 0, [4_000], [], 4_000],
      ['is not shortened by another', 0, [4_000, 1_000], [], 4_000],
      ['applies to requests that wait already', LIMIT, [], [15_000], 15_000],
      ['adds nothing to a longer wait under the limit', LIMIT, [4_000], [], 10_000],
    ])('%s', async (_title, taken, before, after, leavesAtMs) => {
      const bench = createBench()
      for (const grant of await fill(bench, taken)) grant.settle()
      for (const ms of before) bench.limiter.holdBack(ms)
      const left = bench.limiter.acquire('create')
      for (const ms of after) bench.limiter.holdBack(ms)
      await bench.clock.runUntil(left)
      expect(bench.clock.monotonic()).toBe(leavesAtMs)
    })
  })

  describe('an abort', () => {
    it('of one who waits lets the next one have the slot', async () => {
      const bench = createBench()
      for (const grant of await fill(bench, LIMIT - 1)) grant.settle()
      const last = await bench.limiter.acquire('status')
      last.settle()
      const stop = new AbortController()
      const reason = new Error('enough')
      const first = expect(bench.limiter.acquire('status', stop.signal)).rejects.toBe(reason)
      const second = bench.limiter.acquire('status')
      await bench.clock.advance(1_000)
      stop.abort(reason)
      await first
      await bench.clock.runUntil(second)
      expect(bench.clock.monotonic()).toBe(10_000)
      expect(bench.limiter.load()).toBe(1 / LIMIT)
    })
  })

  describe('waiting', () => {
    it('needs one timer, which is set again only when something changes', async () => {
      const bench = createBench()
      for (const grant of await fill(bench)) grant.settle()
      const waiting = Array.from({ length: 5 }, () => bench.limiter.acquire('status'))
      await bench.clock.advance(0)
      expect(bench.clock.sleepers).toBe(1)
      await bench.clock.runUntil(Promise.all(waiting))
      expect(bench.sleeps).toEqual([10_000])
    })

    it('for a response sets no timer', async () => {
      const bench = createBench()
      await fill(bench)
      void bench.limiter.acquire('status')
      await bench.clock.advance(0)
      expect([bench.clock.sleepers, bench.sleeps]).toEqual([0, []])
    })
  })
})
