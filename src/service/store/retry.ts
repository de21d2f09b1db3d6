/** The database cannot be used for a while: how long its operations are tried again, and the error after that. */
import { messageOf } from '../../errors.js'
import { type Clock, systemClock } from '../../host/clock.js'
import { retryErrors, stepOf } from '../../host/retry.js'

const MAX_WAIT_MS = 5_000
/** Maximum wait when the service closes. Below the 3 s that the service waits for its responses. */
const MAX_CLOSING_WAIT_MS = 1_500
const PAUSES_MS = [10, 25, 50, 100, 200] as const

/** The database cannot be reached or cannot accept a change now. A retry may succeed later. */
export class DatabaseUnavailable extends Error {
  override readonly name = 'DatabaseUnavailable'
  readonly code = 'DATABASE_UNAVAILABLE'
  /** Whether the connection was lost during the commit, so that the change may have been made. */
  readonly isUnknown: boolean

  constructor(cause: unknown, { isUnknown = false } = {}) {
    const reason = messageOf(cause)
    super(isUnknown ? `${reason}; the change may have been made` : reason, { cause })
    this.isUnknown = isUnknown
  }
}

/** Tries operations again for 5 s, and for less when the service closes. */
export class DatabaseRetry {
  readonly #clock: Clock
  #stoppedMs: number | undefined

  constructor(clock: Clock = systemClock) {
    this.#clock = clock
  }

  /** Called when the service closes: shortens all waits. */
  stop(): void {
    this.#stoppedMs ??= this.#clock.monotonic()
  }

  /** Calls `work` again after an error, as long as `isTemporary` says so. */
  run<Value>(work: () => Promise<Value>, isTemporary: (error: unknown) => boolean): Promise<Value> {
    const clock = this.#clock
    const startedMs = clock.monotonic()
    return retryErrors(work, {
      pauseMs: (error, number) => {
        // Random: a lock without a queue is lost to a neighbour who always comes first.
        const pauseMs = Math.round(stepOf(PAUSES_MS, number) * (0.5 + Math.random()))
        const isInTime = clock.monotonic() + pauseMs < this.#deadlineMs(startedMs)
        return isTemporary(error) && isInTime ? pauseMs : undefined
      },
      clock,
    })
  }

  #deadlineMs(startedMs: number): number {
    const normalMs = startedMs + MAX_WAIT_MS
    if (this.#stoppedMs === undefined) return normalMs
    return Math.min(normalMs, Math.max(startedMs, this.#stoppedMs) + MAX_CLOSING_WAIT_MS)
  }
}
