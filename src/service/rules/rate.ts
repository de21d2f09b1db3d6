/** Rate limits per key, and the limiter of one process. `postgres.ts` has the limiter for several nodes. */
import type { Clock } from '../../host/clock.js'

export interface RateLimit {
  readonly requests: number
  readonly windowMs: number
}

/** Asynchronous, so that several nodes can share a limiter. */
export interface RateLimiter {
  /**
   * Counts one request for each of these keys and returns true. If a window of one of them would have more requests than
   * the limit, counts nothing and returns false. A request stops counting exactly one window after it was made.
   */
  take(keys: readonly string[], limit: RateLimit): Promise<boolean>
}

interface RequestTimes {
  /** Oldest first; never more than the limit. */
  timesMs: number[]
  windowMs: number
}

const SWEEP_EVERY_MS = 10_000

/** Keeps the request times of each key in memory. `size` is the number of keys. */
export function createMemoryRateLimiter(clock: Clock): RateLimiter & { readonly size: number } {
  const byKey = new Map<string, RequestTimes>()
  let sweptAtMs = Number.NEGATIVE_INFINITY

  function removeExpired(requests: RequestTimes, nowMs: number): void {
    const { timesMs, windowMs } = requests
    const firstCounted = timesMs.findIndex((at) => nowMs - at < windowMs)
    timesMs.splice(0, firstCounted < 0 ? timesMs.length : firstCounted)
  }

  /** Removes idle keys from memory. */
  function sweep(nowMs: number): void {
    if (nowMs - sweptAtMs < SWEEP_EVERY_MS) return
    sweptAtMs = nowMs
    for (const [key, taken] of byKey) {
      removeExpired(taken, nowMs)
      if (taken.timesMs.length === 0) byKey.delete(key)
    }
  }

  return {
    async take(keys, { requests, windowMs }) {
      const nowMs = clock.monotonic()
      sweep(nowMs)
      const all = [...new Set(keys)].map((key) => {
        const taken: RequestTimes = byKey.get(key) ?? { timesMs: [], windowMs }
        taken.windowMs = windowMs
        removeExpired(taken, nowMs)
        return { key, taken }
      })
      if (all.some(({ taken }) => taken.timesMs.length >= requests)) return false
      for (const { key, taken } of all) {
        taken.timesMs.push(nowMs)
        byKey.set(key, taken)
      }
      return true
    },
    get size() {
      return byKey.size
    },
  }
}

const UNITS = [
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const

/** Formats a limit for users, such as `100/10s`. */
export function formatRate({ requests, windowMs }: RateLimit): string {
  const [unit, ms] = UNITS.find(([, each]) => windowMs % each === 0) ?? ['ms', 1]
  return `${requests}/${windowMs / ms}${unit}`
}
