/** Requests per key in a sliding window. Pure arithmetic on times that the caller gives. */

export interface RateLimit {
  readonly requests: number
  readonly windowMs: number
}

export interface RateCounter {
  /** Counts one request of this key at this time, unless the window is full: a refused request does not count. */
  take(key: string, nowMs: number): boolean
  /** How many keys are remembered. */
  readonly size: number
}

export function createRateCounter({ requests, windowMs }: RateLimit): RateCounter {
  const taken = new Map<string, number[]>()
  let sweptAtMs = Number.NEGATIVE_INFINITY

  /** A request stops counting exactly one window after it was made. */
  const within = (times: readonly number[], nowMs: number) => times.filter((at) => nowMs - at < windowMs)

  /** Once a window: forgets the keys that are idle, so that memory holds only those in use. */
  function sweep(nowMs: number): void {
    if (nowMs - sweptAtMs < windowMs) return
    sweptAtMs = nowMs
    for (const [key, times] of taken) if (within(times, nowMs).length === 0) taken.delete(key)
  }

  return {
    take(key, nowMs) {
      sweep(nowMs)
      const times = within(taken.get(key) ?? [], nowMs)
      const free = times.length < requests
      if (free) times.push(nowMs)
      taken.set(key, times)
      return free
    },
    get size() {
      return taken.size
    },
  }
}
