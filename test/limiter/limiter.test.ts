import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Clock } from '../../src/host/clock.js'
import {
  createLimiter,
  type Ledger,
  type Limiter,
  type Purpose,
  type RemoteLedger,
} from '../../src/limiter/index.js'
import { createMemoryLedger } from '../../src/limiter/memory-ledger.js'
import { RUNS_LIMIT } from '../../src/protocol/limits.js'
import { createManualClock, type ManualClock } from '../support/clock.js'
import { createTestLedger } from './ledgers.js'

const { requests: LIMIT, windowMs: WINDOW_MS } = RUNS_LIMIT

interface Bench {
  readonly clock: ManualClock
  readonly limiter: Limiter
  readonly sleeps: readonly number[]
}

interface Kind {
  readonly name: string
  createLedger(clock: ManualClock): Ledger | RemoteLedger
  /** It looks again after a window at the latest, since another process may have answered by then. */
  readonly looksAgain: boolean
}

const KINDS: readonly Kind[] = [
  {
    name: 'of this process',
    createLedger: (clock) => createMemoryLedger(RUNS_LIMIT, clock),
    looksAgain: false,
  },
  { name: 'shared', createLedger: createTestLedger, looksAgain: true },
  {
    name: 'on another machine',
    createLedger(clock) {
      const ledger = createMemoryLedger(RUNS_LIMIT, clock)
      return { ...ledger, take: async (purpose) => ledger.take(purpose) }
    },
    looksAgain: false,
  },
]

describe.each(KINDS)('a limiter on a ledger $name', ({ createLedger, looksAgain }) => {
  function createBench(): Bench {
    const clock = createManualClock()
    const sleeps: number[] = []
    const counting: Pick<Clock, 'monotonic' | 'sleep'> = {
      monotonic: clock.monotonic,
      sleep(ms, signal) {
        sleeps.push(ms)
        return clock.sleep(ms, signal)
      },
    }
    return { clock, sleeps, limiter: createLimiter(RUNS_LIMIT, counting, { ledger: createLedger(clock) }) }
  }

  /** Takes places one after the other; the grants come in the order of their names. */
  async function fill({ limiter }: Bench, count: number = LIMIT) {
    return await Promise.all(Array.from({ length: count }, () => limiter.acquire('status')))
  }

  describe('twenty in any ten seconds, as a service counts', () => {
    const request = fc.record({
      askedAtMs: fc.integer({ min: 0, max: 15_000 }),
      purpose: fc.constantFrom<Purpose>('create', 'status'),
      latencyMs: fc.oneof(
        fc.constant(0),
        fc.integer({ min: 1, max: 400 }),
        fc.integer({ min: 1, max: 12_000 }),
      ),
      /** Where between its sending and its answer the service counts it. */
      countedAt: fc.double({ min: 0, max: 1, noNaN: true }),
    })

    it('whatever the latencies are, and wherever in them a request is counted', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(request, { minLength: 21, maxLength: 70 }), async (requests) => {
          const { clock, limiter } = createBench()
          const counted: number[] = []
          const sent = requests.map(async ({ askedAtMs, purpose, latencyMs, countedAt }) => {
            await clock.sleep(askedAtMs)
            const grant = await limiter.acquire(purpose)
            counted.push(clock.monotonic() + latencyMs * countedAt)
            await clock.sleep(latencyMs)
            grant.settle()
          })
          await clock.advance(300_000)
          await Promise.all(sent)
          const instants = counted.toSorted((a, b) => a - b)
          expect(instants).toHaveLength(requests.length)
          for (const [index, instant] of instants.slice(LIMIT).entries())
            expect(instant - (instants[index] ?? 0)).toBeGreaterThanOrEqual(WINDOW_MS)
        }),
        { numRuns: 25 },
      )
    })

    it('and no slower than that: with answers at once, twenty leave every ten seconds', async () => {
      const { clock, limiter } = createBench()
      const grantedAtMs: number[] = []
      const sent = Array.from({ length: 60 }, async () => {
        const grant = await limiter.acquire('status')
        grantedAtMs.push(clock.monotonic())
        grant.settle()
      })
      await clock.runUntil(Promise.all(sent))
      expect(grantedAtMs).toEqual(
        [0, 10_000, 20_000].flatMap((ms) => Array.from({ length: LIMIT }, () => ms)),
      )
    })

    it('a place whose answer never comes stays taken', async () => {
      const bench = createBench()
      const [grant] = await fill(bench)
      let left = false
      const waiting = bench.limiter.acquire('status').then(() => {
        left = true
      })
      await bench.clock.advance(600_000)
      expect(left).toBe(false)
      grant?.settle()
      await bench.clock.advance(9_999)
      expect(left).toBe(false)
      await bench.clock.advance(1)
      await waiting
      expect(bench.clock.monotonic()).toBe(610_000)
    })

    it('settling twice changes nothing', async () => {
      const bench = createBench()
      const grants = await fill(bench)
      for (const grant of grants) grant.settle()
      await bench.clock.advance(5_000)
      for (const grant of grants) grant.settle()
      await bench.clock.advance(5_000)
      expect(bench.limiter.load()).toBe(0)
    })
  })

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

  describe('holdBack', () => {
    const leavesAfter = async (bench: Bench): Promise<number> => {
      await bench.clock.runUntil(bench.limiter.acquire('create'))
      return bench.clock.monotonic()
    }

    it('lets nobody leave, though places are free', async () => {
      const bench = createBench()
      bench.limiter.holdBack(4_000)
      expect(await leavesAfter(bench)).toBe(4_000)
    })

    it('reaches those who wait already', async () => {
      const bench = createBench()
      for (const grant of await fill(bench)) grant.settle()
      const left = leavesAfter(bench)
      bench.limiter.holdBack(15_000)
      expect(await left).toBe(15_000)
    })

    it('is never shortened by another', async () => {
      const bench = createBench()
      bench.limiter.holdBack(4_000)
      bench.limiter.holdBack(1_000)
      expect(await leavesAfter(bench)).toBe(4_000)
    })

    it('adds nothing to a longer wait under the limit', async () => {
      const bench = createBench()
      for (const grant of await fill(bench)) grant.settle()
      bench.limiter.holdBack(4_000)
      expect(await leavesAfter(bench)).toBe(10_000)
    })
  })

  describe('an abort', () => {
    it('before the asking rejects with its reason and takes no place', async () => {
      const { limiter } = createBench()
      const reason = new Error('enough')
      await expect(limiter.acquire('status', AbortSignal.abort(reason))).rejects.toBe(reason)
      expect(limiter.load()).toBe(0)
    })

    it('of one who waits lets the next one have the place', async () => {
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

    it('of the only one who waits leaves no timer', async () => {
      const bench = createBench()
      for (const grant of await fill(bench)) grant.settle()
      const stop = new AbortController()
      const waiting = expect(bench.limiter.acquire('status', stop.signal)).rejects.toThrow()
      stop.abort()
      await waiting
      await bench.clock.advance(0)
      expect(bench.clock.sleepers).toBe(0)
    })

    it('after the grant changes nothing', async () => {
      const { limiter } = createBench()
      const stop = new AbortController()
      await limiter.acquire('status', stop.signal)
      stop.abort()
      expect(limiter.load()).toBe(1 / LIMIT)
    })
  })

  describe('waiting', () => {
    it('is one timer, set anew only when something changes', async () => {
      const bench = createBench()
      for (const grant of await fill(bench)) grant.settle()
      const waiting = Array.from({ length: 5 }, () => bench.limiter.acquire('status'))
      await bench.clock.advance(0)
      expect(bench.clock.sleepers).toBe(1)
      await bench.clock.runUntil(Promise.all(waiting))
      expect(bench.sleeps).toEqual([10_000])
    })

    it('for an answer sets no timer, or one a window long', async () => {
      const bench = createBench()
      await fill(bench)
      void bench.limiter.acquire('status')
      await bench.clock.advance(0)
      expect([bench.clock.sleepers, bench.sleeps]).toEqual(looksAgain ? [1, [10_000]] : [0, []])
    })
  })

  describe('the load', () => {
    it('is the share of the places in use', async () => {
      const bench = createBench()
      expect(bench.limiter.load()).toBe(0)
      for (const grant of await fill(bench, 5)) grant.settle()
      await bench.clock.advance(5_000)
      await fill(bench, 5)
      expect(bench.limiter.load()).toBe(0.5)
      await bench.clock.advance(5_000)
      expect(bench.limiter.load()).toBe(0.25)
    })
  })
})
