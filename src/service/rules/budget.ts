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
}

/** Throws `Refusal`: 403 for the spend limit, 429 for the quota, 402 for the balance, in this order. */
export function checkBudget({ spent, spendLimit, used, quota, balance }: AccountState, price: number): void {
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
