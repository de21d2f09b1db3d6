/** Time, from outside: everything that waits is given a clock, and every sleep takes a signal. */
import { onAbort } from './abort.js'

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
  /**
   * Calls `onTimeout` once after `ms`, unless disarmed before. Does not keep the process alive. What the sockets hold at that
   * moment is read first: after a suspension (SIGSTOP, a closed lid) the answer may already be there.
   */
  alarm(ms: number, onTimeout: () => void): Disarm
}

export type Disarm = () => void

/** Node's timers hold at most 2^31-1 ms; a longer one would fire at once. */
const MAX_TIMER_MS = 2_147_483_647

const timerMs = (ms: number): number => Math.min(Math.max(0, ms), MAX_TIMER_MS)

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => Number(process.hrtime.bigint()) / 1e6,
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const timer = setTimeout(() => {
        forget()
        resolve()
      }, timerMs(ms))
      const forget = onAbort(signal, () => {
        clearTimeout(timer)
        reject(signal?.reason)
      })
    }),
  alarm: (ms, onTimeout) => {
    let afterReading: NodeJS.Immediate | undefined
    // Timers run before sockets are read, immediates after.
    const timer = setTimeout(() => {
      afterReading = setImmediate(onTimeout)
    }, timerMs(ms)).unref()
    return () => {
      clearTimeout(timer)
      clearImmediate(afterReading)
    }
  },
}
