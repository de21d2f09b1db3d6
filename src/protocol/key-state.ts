/** Whether an API key works, and if not, why: for the console and `rushes admin`. */

/** Undefined: no limit. */
export interface KeyUse {
  readonly disabled: boolean
  readonly expiresAtMs: number | undefined
  readonly spent: number
  readonly spendLimit: number | undefined
  readonly used: number
  readonly quota: number | undefined
}

export type KeyState = 'active' | 'disabled' | 'expired' | 'spend limit reached' | 'quota used up'

/** In the order in which the service checks. */
export function keyStateOf(
  { disabled, expiresAtMs, spent, spendLimit, used, quota }: KeyUse,
  nowMs: number,
): KeyState {
  if (disabled) return 'disabled'
  if (expiresAtMs !== undefined && expiresAtMs <= nowMs) return 'expired'
  if (spendLimit !== undefined && spent >= spendLimit) return 'spend limit reached'
  return quota !== undefined && used >= quota ? 'quota used up' : 'active'
}
