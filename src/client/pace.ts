/** When to look next, pure. */
import { jittered, stepOf } from '../host/backoff.js'
import { POLL_INTERVAL_MS } from '../protocol/limits.js'

/** After a create was accepted. */
export const FIRST_LOOK_MS = POLL_INTERVAL_MS.min
const SLOWEST_MS = 5_000
const TROUBLE_WAITS_MS = [1_000, 2_000, 4_000, 8_000] as const

/**
 * Every 1 to 2 s with jitter; beyond half of the budget slower, up to 5 s when all of it is in use.
 * `load` is the share in use, `random` is in [0, 1).
 */
export function nextLookMs(load: number, random: number): number {
  const strain = Math.max(0, load - 0.5) * 2
  const slower = strain * (SLOWEST_MS - POLL_INTERVAL_MS.max)
  return jittered({ min: POLL_INTERVAL_MS.min + slower, max: POLL_INTERVAL_MS.max + slower }, random)
}

/** After the nth look in a row that brought no good answer: 1, 2, 4, 8, 8 … s, or what the service asked for. */
export const nextTryMs = (failures: number, retryAfterMs: number): number =>
  Math.max(stepOf(TROUBLE_WAITS_MS, failures), retryAfterMs)
