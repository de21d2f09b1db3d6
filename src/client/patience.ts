/**
 * How long a wait survives a service that gives no good answer, pure: at least six tries and two minutes in which
 * this machine was awake. A laptop that slept for a night has not asked for a night.
 */

const FEWEST_TRIES = 6
const LEAST_WAKING_MS = 120_000
/** No step is longer while awake: the longest wait asked for, and a request that is silent to its limit. */
const LONGEST_STEP_MS = 75_000

export interface Patience {
  /** Tries in a row without a good answer. */
  readonly failures: number
  readonly wakingMs: number
}

export const UNTRIED: Patience = { failures: 0, wakingMs: 0 }

/** `elapsedMs`: since the try before, by the clock. */
export const afterFailure = ({ failures, wakingMs }: Patience, elapsedMs: number): Patience => ({
  failures: failures + 1,
  wakingMs: wakingMs + Math.min(Math.max(0, elapsedMs), LONGEST_STEP_MS),
})

export const isExhausted = ({ failures, wakingMs }: Patience): boolean =>
  failures >= FEWEST_TRIES && wakingMs >= LEAST_WAKING_MS
