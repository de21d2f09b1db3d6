/** The published limits and intervals (sections 2.4, 4.2, 7 and 8 of the interface), and the limits of accounts and keys. */

/** Requests per API key to the runs endpoints, create and status together. */
export const RUNS_LIMIT = { requests: 20, windowMs: 10_000 } as const

/** Requests per client address and per email to all authentication endpoints together. */
export const AUTH_LIMIT = { requests: 5, windowMs: 60_000 } as const

/** Requests per session to the session check. */
export const SESSION_CHECK_LIMIT = { requests: 60, windowMs: 60_000 } as const

/** The recommended polling interval. */
export const POLL_INTERVAL_MS = { min: 1_000, max: 2_000 } as const

/** Waits before the retries after a 429. */
export const RATE_LIMITED_WAITS_MS = [1_000, 2_000, 4_000] as const

/**
 * Maximum size of a request body. The interface does not define it, so this is the limit of the local service.
 */
export const MAX_BODY_BYTES = 64 * 1024 * 1024

/** Formats an amount of credits: `1 credit`, `5 credits`. */
export const credits = (amount: number): string => `${amount} credit${amount === 1 ? '' : 's'}`

/**
 * Maximum of one change of a balance, and of a spend limit. Thousands of such changes fit into a balance, which must
 * remain an integer that a double stores exactly.
 */
export const MAX_CREDITS = 1_000_000_000_000

export const MIN_PASSWORD_LENGTH = 12

/** Use and limits of an API key. An undefined limit means no limit. */
interface KeyUse {
  readonly disabled: boolean
  readonly expiresAtMs: number | undefined
  readonly spent: number
  readonly spendLimit: number | undefined
  readonly used: number
  readonly quota: number | undefined
}

export type KeyState = 'active' | 'disabled' | 'expired' | 'spend limit reached' | 'quota used up'

/** Returns the state of an API key. The checks have the same order as in the service. */
export function keyStateOf(
  { disabled, expiresAtMs, spent, spendLimit, used, quota }: KeyUse,
  nowMs: number,
): KeyState {
  if (disabled) return 'disabled'
  if (expiresAtMs !== undefined && expiresAtMs <= nowMs) return 'expired'
  if (spendLimit !== undefined && spent >= spendLimit) return 'spend limit reached'
  return quota !== undefined && used >= quota ? 'quota used up' : 'active'
}
