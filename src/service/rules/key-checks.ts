/** Checks the key of a request, and whether it can pay for a run ("Order of checks" in docs/service.md). Pure. */
import { credits } from '../../protocol/limits.js'
import { shortened } from '../../protocol/text.js'
import type { KeyTerms } from './key-terms.js'
import { createNetworkMatcher } from './networks.js'
import { Refusal } from './refusal.js'

interface KeyValidity extends Pick<KeyTerms, 'disabled' | 'expiresAtMs'> {
  /** Whether the key's account is banned. */
  readonly banned: boolean
}

/** A stored key, found by its hash. */
export interface KeyRecord extends KeyValidity, Pick<KeyTerms, 'allowedIps' | 'rate'> {
  readonly id: number
  readonly accountId: number
}

export interface Caller {
  readonly keyId: number
  readonly accountId: number
}

/**
 * Returns the key of an `Authorization` header: one word after `Bearer`, which is case-insensitive (RFC 9110, 11.1).
 */
export function bearerKey(authorization: string | undefined): string {
  const key = /^bearer +(\S+) *$/i.exec(authorization ?? '')?.[1]
  if (key === undefined) throw new Refusal('missing_api_key')
  return key
}

/** Throws `Refusal` (401) when the key is unknown, disabled or expired. */
export function checkKey(record: KeyRecord | undefined, nowMs: number): KeyRecord {
  if (record === undefined || !isUsable(record, nowMs)) throw new Refusal('invalid_api_key')
  return record
}

const isUsable = ({ disabled, expiresAtMs }: KeyValidity, nowMs: number): boolean =>
  !disabled && (expiresAtMs === undefined || nowMs < expiresAtMs)

/** Throws `Refusal` (403) when the account is banned, or the key does not allow this IP address. */
export function checkAccess({ banned, allowedIps }: KeyRecord, ip: () => string): void {
  if (banned) throw new Refusal('account_banned')
  if (allowedIps === undefined) return
  const from = ip()
  if (!createNetworkMatcher(allowedIps)(from))
    throw new Refusal('ip_not_allowed', `The request came from ${shortened(from)}.`)
}

/**
 * Limits and usage of a key, and its account's balance. An undefined limit means no limit. The key and account are
 * checked again, since the first check was before the body was read, which may take a minute.
 */
export interface AccountState extends KeyValidity, Pick<KeyTerms, 'spendLimit' | 'quota'> {
  /** In credits. */
  readonly spent: number
  /** Number of accepted runs. */
  readonly used: number
  /** In credits. */
  readonly balance: number
}

/**
 * Throws `Refusal`, in this order: 401 for the key, 403 for the account and the spend limit, 429 for the quota, 402 for
 * the balance.
 */
export function checkBudget(account: AccountState, price: number, nowMs: number): void {
  const { spent, spendLimit, used, quota, balance } = account
  if (!isUsable(account, nowMs)) throw new Refusal('invalid_api_key')
  if (account.banned) throw new Refusal('account_banned')
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
