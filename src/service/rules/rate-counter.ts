/** Counts requests per key in a sliding window. Pure: the caller passes in the time. */

export interface RateLimit {
  readonly requests: number
  readonly windowMs: number
}

export interface RateCounter {
  /** Counts one request of this key; false when the window is full. A refused request does not count. */
  take(key: string, nowMs: number): boolean
  /** How many keys are in memory. */
  readonly size: number
}

export function createRateCounter({ requests, windowMs }: RateLimit): RateCounter {
  /** The times of each key's requests, the oldest first; never more than the limit. */
  const taken = new Map<string, number[]>()
  let sweptAtMs = Number.NEGATIVE_INFINITY

  /** A request stops counting exactly one window after it was made. */
  function forgetOld(times: number[], nowMs: number): void {
    let old = 0
    while (old < times.length && nowMs - (times[old] ?? nowMs) >= windowMs) old++
    if (old > 0) times.splice(0, old)
  }

  /** Once a window: removes idle keys from memory. */
  function sweep(nowMs: number): void {
    if (nowMs - sweptAtMs < windowMs) return
    sweptAtMs = nowMs
    for (const [key, times] of taken) {
      forgetOld(times, nowMs)
      if (times.length === 0) taken.delete(key)
    }
  }

  return {
    take(key, nowMs) {
      sweep(nowMs)
      let times = taken.get(key)
      if (times === undefined) {
        times = []
        taken.set(key, times)
      }
      forgetOld(times, nowMs)
      if (times.length >= requests) return false
      times.push(nowMs)
      return true
    },
    get size() {
      return taken.size
    },
  }
}
