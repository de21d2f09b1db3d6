/** How long a statement waits for a connection. */
import { stepOf } from '../../../host/backoff.js'
import { type Clock, systemClock } from '../../../host/clock.js'

const MAX_WAIT_MS = 5_000
/** When the service closes: it waits 3 s for its responses. */
const MAX_CLOSING_WAIT_MS = 1_500
const PAUSES_MS = [10, 25, 50, 100, 200] as const

export interface Waiting {
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>
  /** The pause after attempt `number` (from 1) of what began at this time; undefined when it has waited long enough. */
  pauseMs(startedMs: number, number: number): number | undefined
  /** From now on nothing waits long. */
  stop(): void
}

export function createWaiting(clock: Waiting['clock'] = systemClock): Waiting {
  let stoppedMs: number | undefined

  function deadlineMs(startedMs: number): number {
    const usual = startedMs + MAX_WAIT_MS
    return stoppedMs === undefined
      ? usual
      : Math.min(usual, Math.max(startedMs, stoppedMs) + MAX_CLOSING_WAIT_MS)
  }

  return {
    clock,
    pauseMs(startedMs, number) {
      const pause = stepOf(PAUSES_MS, number)
      return clock.monotonic() + pause < deadlineMs(startedMs) ? pause : undefined
    },
    stop() {
      stoppedMs ??= clock.monotonic()
    },
  }
}
