/** Time, from outside: everything that waits is given a clock, and every sleep takes a signal. */
import { onAbort } from './abort.js'

export interface Clock {
  /** Wall-clock time in milliseconds since the epoch: for records, never for measuring. */
  now(): number
  /**
   * Milliseconds since this machine was started: only forward, independent of the wall clock, and the same for
   * all its processes.
   */
  monotonic(): number
  /** Rejects with the signal's reason when that comes first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /**
   * Calls `onTimeout` once after `ms`, unless disarmed before. Does not keep the process alive. What the sockets
   * hold at that moment is read first: after a suspension (SIGSTOP, a closed lid) the answer may already be there.
   */
  alarm(ms: number, onTimeout: () => void): Disarm
}

export type Disarm = () => void

/** Node's timers hold at most 2^31-1 ms; a longer one would fire at once. */
const MAX_TIMER_MS = 2_147_483_647

/** A time of any length, which may need several of Node's timers. `isAwaited`: keeps the process alive. */
function startTimer(ms: number, isAwaited: boolean, ring: () => void): Disarm {
  let timer: NodeJS.Timeout
  function start(leftMs: number): void {
    const stepMs = Math.min(Math.max(0, leftMs), MAX_TIMER_MS)
    timer = setTimeout(() => (leftMs > stepMs ? start(leftMs - stepMs) : ring()), stepMs)
    if (!isAwaited) timer.unref()
  }
  start(ms)
  return () => clearTimeout(timer)
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => Number(process.hrtime.bigint()) / 1e6,
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const disarm = startTimer(ms, true, () => {
        forget()
        resolve()
      })
      const forget = onAbort(signal, () => {
        disarm()
        reject(signal?.reason)
      })
    }),
  alarm: (ms, onTimeout) => {
    let afterReading: NodeJS.Immediate | undefined
    // Timers run before sockets are read, immediates after.
    const disarm = startTimer(ms, false, () => {
      afterReading = setImmediate(onTimeout)
    })
    return () => {
      disarm()
      clearImmediate(afterReading)
    }
  },
}
