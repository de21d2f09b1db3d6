/** The price of a run (CONTRACT 9), and whether its key and account can pay it. */
import type { Kind } from '../../protocol/models.js'
import { LOCAL_DEFAULTS } from '../local-models.js'
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

/** In credits. `input` has been checked against the schema of its kind. */
export function priceOf(kind: Kind, input: Readonly<Record<string, unknown>>): number {
  const { quality, resolution, duration } = { ...LOCAL_DEFAULTS[kind], ...input }
  if (kind === 'image') return quality === 'high' ? 2 : 1
  return Number(duration) * (resolution === '1080p' ? 2 : 1)
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

const credits = (amount: number): string => `${amount} credit${amount === 1 ? '' : 's'}`
