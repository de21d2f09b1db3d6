/** Time, from outside: everything that waits is given a clock, and every sleep takes a signal. */

export interface Clock {
  /** Wall-clock time in milliseconds since the epoch: for records, never for measuring. */
  now(): number
  /**
   * Milliseconds since this machine was started: only forward, whatever happens to the wall clock, and the same for
   * all its processes.
   */
  monotonic(): number
  /** Rejects with the signal's reason when that comes first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Calls `ring` once after `ms`, unless disarmed before. Does not keep the process alive. */
  alarm(ms: number, ring: () => void): Disarm
}

export type Disarm = () => void

/** Timers of Node hold at most 2^31-1 ms and fire at once beyond it. */
const LONGEST_TIMER_MS = 2_147_483_647

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => Number(process.hrtime.bigint()) / 1e6,
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const wake = () => {
        signal?.removeEventListener('abort', abort)
        resolve()
      }
      const timer = setTimeout(wake, Math.min(Math.max(0, ms), LONGEST_TIMER_MS))
      const abort = () => {
        clearTimeout(timer)
        reject(signal?.reason)
      }
      signal?.addEventListener('abort', abort, { once: true })
    }),
  alarm: (ms, ring) => {
    const timer = setTimeout(ring, Math.min(Math.max(0, ms), LONGEST_TIMER_MS))
    timer.unref()
    return () => clearTimeout(timer)
  },
}
