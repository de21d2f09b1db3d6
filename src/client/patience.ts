/**
 * How long a wait survives a service that gives no usable answer, pure: at least six tries and two minutes in which
 * this machine was awake. The hours that a laptop slept do not count.
 */

const MIN_TRIES = 6
const MIN_WAKING_MS = 120_000
/** The longest step while awake: the longest `Retry-After` that is obeyed, and the time limit of one request. */
const MAX_STEP_MS = 75_000

export interface Patience {
  /** Tries in a row without a usable answer. */
  readonly failures: number
  readonly wakingMs: number
}

export const FULL_PATIENCE: Patience = { failures: 0, wakingMs: 0 }

/** `elapsedMs`: since the try before, by the clock. */
export const afterFailure = ({ failures, wakingMs }: Patience, elapsedMs: number): Patience => ({
  failures: failures + 1,
  wakingMs: wakingMs + Math.min(Math.max(0, elapsedMs), MAX_STEP_MS),
})

export const isExhausted = ({ failures, wakingMs }: Patience): boolean =>
  failures >= MIN_TRIES && wakingMs >= MIN_WAKING_MS
