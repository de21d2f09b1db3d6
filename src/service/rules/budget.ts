/** Whether the key and the account of a run can pay it. */
import { credits } from '../../protocol/local-prices.js'
import { Refusal } from './refusal.js'

/** The limits and use of a key, and its account's balance. An undefined limit means no limit. */
export interface AccountState {
  /** Credits. */
  readonly spent: number
  readonly spendLimit: number | undefined
  /** Accepted runs. */
  readonly used: number
  readonly quota: number | undefined
  /** Credits. */
  readonly balance: number
  /** Whether key and account may still be used: both are checked before a body is read, which may take a minute. */
  readonly disabled: boolean
  readonly expiresAtMs: number | undefined
  readonly banned: boolean
}

/** Throws `Refusal`: 401 for the key, 403 for the account and the spend limit, 429 for the quota, 402 for the balance, in this order. */
export function checkBudget(account: AccountState, price: number, nowMs: number): void {
  const { spent, spendLimit, used, quota, balance, disabled, expiresAtMs, banned } = account
  if (disabled || (expiresAtMs !== undefined && nowMs >= expiresAtMs)) throw new Refusal('invalid_api_key')
  if (banned) throw new Refusal('account_banned')
  const costs = `This run costs ${credits(price)}`
  if (spendLimit !== undefined && spent + price > spendLimit)
    throw new Refusal(
      'api_key_spend_limit_exceeded',
      `${costs}; the key has spent ${spent} of ${spendLimit}.`,
    )
  if (quota !== undefined && used >= quota)
    throw new Refusal('USAGE_EXCEEDED', `The key has made ${used} of ${quota} runs.`)
  if (price > balance) throw new Refusal('insufficient_balance', `${costs}; the account has ${balance}.`)
}
