/** The clock that all waiting code gets as a parameter, so that tests can replace it. Every sleep takes a signal. */
import { onAbort } from './abort.js'

export interface Clock {
  /** Wall-clock time in milliseconds since the epoch. Use it for records, never to measure durations. */
  now(): number
  /**
   * Milliseconds since this machine started: never goes back, does not depend on the wall clock, and is the same for
   * all processes of the machine.
   */
  monotonic(): number
  /** Resolves after `ms`, or rejects with the signal's reason if the signal is aborted first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /**
   * Calls `onTimeout` once after `ms`, unless disarmed before. Does not keep the process alive. Data that has already
   * arrived on sockets is read first: after a suspension (SIGSTOP, a closed lid) the answer may already be there.
   */
  alarm(ms: number, onTimeout: () => void): Disarm
}

export type Disarm = () => void

/** Maximum duration of a Node timer (2^31-1 ms); a longer one would fire immediately. */
const MAX_TIMER_MS = 2_147_483_647

/**
 * Starts a timer of any duration, with several Node timers if needed. `isAwaited`: the timer keeps the process alive.
 */
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
    // Node runs timers before it reads sockets, and immediates after.
    const disarm = startTimer(ms, false, () => {
      afterReading = setImmediate(onTimeout)
    })
    return () => {
      disarm()
      clearImmediate(afterReading)
    }
  },
}

/** Calls `work` every `ms`, until disarmed. */
export function every(clock: Clock, ms: number, work: () => void): Disarm {
  let disarm: Disarm
  const arm = () => {
    disarm = clock.alarm(ms, () => {
      work()
      arm()
    })
  }
  arm()
  return () => disarm()
}
