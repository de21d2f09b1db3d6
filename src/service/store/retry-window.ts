/** How long an operation of the database is tried again: 5 s, and less when the service closes. */
import { type Clock, systemClock } from '../../host/clock.js'
import { stepOf } from '../../host/retry.js'

const MAX_WAIT_MS = 5_000
/** Maximum wait when the service closes. Below the 3 s that the service waits for its responses. */
const MAX_CLOSING_WAIT_MS = 1_500
const PAUSES_MS = [10, 25, 50, 100, 200] as const

export interface RetryWindow {
  readonly clock: Clock
  /**
   * Returns the pause after attempt `number` (from 1) of an operation that began at `startedMs`. Undefined if the
   * operation has waited long enough.
   */
  pauseMs(startedMs: number, number: number): number | undefined
  /** Called when the service closes: shortens all waits. */
  stop(): void
}

export function createRetryWindow(clock: Clock = systemClock): RetryWindow {
  let stoppedMs: number | undefined

  function deadlineMs(startedMs: number): number {
    const normalMs = startedMs + MAX_WAIT_MS
    return stoppedMs === undefined
      ? normalMs
      : Math.min(normalMs, Math.max(startedMs, stoppedMs) + MAX_CLOSING_WAIT_MS)
  }

  return {
    clock,
    pauseMs(startedMs, number) {
      // Random: a lock without a queue is lost to a neighbour who always comes first.
      const pause = Math.round(stepOf(PAUSES_MS, number) * (0.5 + Math.random()))
      return clock.monotonic() + pause < deadlineMs(startedMs) ? pause : undefined
    },
    stop() {
      stoppedMs ??= clock.monotonic()
    },
  }
}
