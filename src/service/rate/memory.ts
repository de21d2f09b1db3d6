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

  function takeAllAt(keys: readonly string[], { requests, windowMs }: RateLimit, nowMs: number): boolean {
    sweep(nowMs)
    const all = [...new Set(keys)].map((key) => {
      const taken: Taken = byKey.get(key) ?? { timesMs: [], windowMs }
      taken.windowMs = windowMs
      forgetOld(taken, nowMs)
      return { key, taken }
    })
    if (all.some(({ taken }) => taken.timesMs.length >= requests)) return false
    for (const { key, taken } of all) {
      taken.timesMs.push(nowMs)
      byKey.set(key, taken)
    }
    return true
  }

  return {
    take: async (key, limit) => takeAllAt([key], limit, clock.monotonic()),
    takeAll: async (keys, limit) => takeAllAt(keys, limit, clock.monotonic()),
    get size() {
      return byKey.size
    },
  }
}
