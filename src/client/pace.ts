/** When to ask for a run's status again, pure. */
import { stepOf } from '../host/backoff.js'
import { POLL_INTERVAL_MS } from '../protocol/limits.js'

/** From the answer to the create to the first status request. */
export const FIRST_POLL_MS = POLL_INTERVAL_MS.min
/** The longest pause, when all of the key's budget is in use. */
const MAX_PAUSE_MS = 5_000
const TROUBLE_WAITS_MS = [1_000, 2_000, 4_000, 8_000] as const

/** The next status request is due between these; both in milliseconds from now. */
export interface PollWindow {
  readonly soonestMs: number
  readonly latestMs: number
}

/**
 * Every 1 to 2 s; when more than half of the key's budget is in use slower, up to 4 to 5 s when all of it is.
 * `load` is the share in use.
 */
export function pollWindow(load: number): PollWindow {
  const strain = Math.max(0, load - 0.5) * 2
  const slower = strain * (MAX_PAUSE_MS - POLL_INTERVAL_MS.max)
  return { soonestMs: POLL_INTERVAL_MS.min + slower, latestMs: POLL_INTERVAL_MS.max + slower }
}

/** After the nth status request in a row without a usable answer: 1, 2, 4, 8, 8 … s, or what the service asked for. */
export const nextTryMs = (failures: number, retryAfterMs: number): number =>
  Math.max(stepOf(TROUBLE_WAITS_MS, failures), retryAfterMs)
