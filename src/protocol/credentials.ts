/** Limits and rules of API keys and passwords, checked by the service and by the console's page. */

/**
 * Maximum of one change of a balance, and of a spend limit. Thousands of such changes fit into a balance, which must
 * remain an integer that a double stores exactly.
 */
export const MAX_CREDITS = 1_000_000_000_000

/** Maximum number of allowed IP addresses and networks of a key. */
export const MAX_ALLOWED_IPS = 100

export const MIN_PASSWORD_LENGTH = 12
export const MAX_PASSWORD_LENGTH = 1_000

/**
 * Returns the form of a password that is stored. The same characters in different Unicode forms are the same password.
 */
export const normalizedPassword = (password: string): string => password.normalize('NFKC')

/**
 * Returns the length in code points: the smaller of the lengths before and after normalization, which can turn one
 * ligature into 18 letters, and two characters into one.
 */
export const passwordLength = (password: string): number =>
  Math.min(...[password, normalizedPassword(password)].map((form) => [...form].length))

/**
 * Returns whether a password contains control characters or unpaired surrogates: users cannot type them, and the key
 * derivation treats some of them as equal.
 */
export const hasForbiddenCharacter = (password: string): boolean => /[\p{Cc}\p{Cs}]/u.test(password)

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
