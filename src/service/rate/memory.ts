/** The rate limiter of one process: the times of the requests of each key, in memory. */
import type { Clock } from '../../host/clock.js'
import type { RateLimit, RateLimiter } from './contract.js'

interface Taken {
  /** The oldest first; never more than the limit. */
  timesMs: number[]
  windowMs: number
}

const SWEEP_EVERY_MS = 10_000

export interface MemoryRateLimiter extends RateLimiter {
  /** How many keys are in memory. */
  readonly size: number
}

export function createMemoryRateLimiter(clock: Pick<Clock, 'monotonic'>): MemoryRateLimiter {
  const byKey = new Map<string, Taken>()
  let sweptAtMs = Number.NEGATIVE_INFINITY

  function forgetOld(taken: Taken, nowMs: number): void {
    const { timesMs, windowMs } = taken
    const old = timesMs.findIndex((at) => nowMs - at < windowMs)
    timesMs.splice(0, old < 0 ? timesMs.length : old)
  }

  /** Removes idle keys from memory. */
  function sweep(nowMs: number): void {
    if (nowMs - sweptAtMs < SWEEP_EVERY_MS) return
    sweptAtMs = nowMs
    for (const [key, taken] of byKey) {
      forgetOld(taken, nowMs)
      if (taken.timesMs.length === 0) byKey.delete(key)
    }
  }

  function takeAt(key: string, { requests, windowMs }: RateLimit, nowMs: number): boolean {
    sweep(nowMs)
    const taken = byKey.get(key) ?? { timesMs: [], windowMs }
    byKey.set(key, taken)
    taken.windowMs = windowMs
    forgetOld(taken, nowMs)
    if (taken.timesMs.length >= requests) return false
    taken.timesMs.push(nowMs)
    return true
  }

  return {
    take: async (key, limit) => takeAt(key, limit, clock.monotonic()),
    get size() {
      return byKey.size
    },
  }
}
