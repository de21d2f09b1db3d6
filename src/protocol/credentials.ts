/** API keys and passwords: their limits and forms, checked by the service and by the console's page. */

/**
 * For one change of a balance, and for a limit. Thousands of these fit into a balance, which must stay an integer
 * that a double holds exactly.
 */
export const MAX_CREDITS = 1_000_000_000_000

/** Addresses and networks in the whitelist of a key. */
export const MAX_ALLOWED_IPS = 100

/** Of an account: those that are not disabled. */
export const MAX_ACTIVE_KEYS = 200

/** The last instant that RFC 3339 can write: years have four digits. */
export const MAX_TIME_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

export const MIN_PASSWORD_LENGTH = 12
export const MAX_PASSWORD_LENGTH = 1_000

/** The form that is stored, so that the same characters in another form of Unicode are the same password. */
export const normalizedPassword = (password: string): string => password.normalize('NFKC')

/** In code points, of the shorter form: one ligature may replace 18 letters, and two characters for one. */
export const passwordLength = (password: string): number =>
  Math.min(...[password, normalizedPassword(password)].map((form) => [...form].length))

/** Control characters and halves of characters: they are not typed, and some of them are the same to the derivation. */
export const hasForbiddenCharacter = (password: string): boolean => /[\p{Cc}\p{Cs}]/u.test(password)

/** Undefined: no limit. */
interface KeyUse {
  readonly disabled: boolean
  readonly expiresAtMs: number | undefined
  readonly spent: number
  readonly spendLimit: number | undefined
  readonly used: number
  readonly quota: number | undefined
}

export type KeyState = 'active' | 'disabled' | 'expired' | 'spend limit reached' | 'quota used up'

/** Whether an API key works, in the order in which the service checks. */
export function keyStateOf(
  { disabled, expiresAtMs, spent, spendLimit, used, quota }: KeyUse,
  nowMs: number,
): KeyState {
  if (disabled) return 'disabled'
  if (expiresAtMs !== undefined && expiresAtMs <= nowMs) return 'expired'
  if (spendLimit !== undefined && spent >= spendLimit) return 'spend limit reached'
  return quota !== undefined && used >= quota ? 'quota used up' : 'active'
}
