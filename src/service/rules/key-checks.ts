/** Checks the key of a request, and whether it can pay for a run (docs/service.md, "Order of checks"). Pure. */
import { credits } from '../../protocol/limits.js'
import { shortened } from '../../protocol/text.js'
import type { RateLimit } from '../rate/rate-limiter.js'
import { hashOfKey, sameHash } from '../secrets.js'
import { createNetworkMatcher } from './networks.js'
import { Refusal } from './refusal.js'

interface KeyValidity {
  readonly disabled: boolean
  readonly expiresAtMs: number | undefined
  /** Whether its account is banned. */
  readonly banned: boolean
}

/** A stored key; only its hash is known. */
export interface KeyRecord extends KeyValidity {
  readonly id: number
  readonly accountId: number
  readonly hash: string
  /** Undefined: from anywhere. */
  readonly allowedIps: readonly string[] | undefined
  /** Undefined: the published limit. */
  readonly rate: RateLimit | undefined
}

export interface Caller {
  readonly keyId: number
  readonly accountId: number
}

/** The key of an `Authorization` header: one word after `Bearer`, whose case does not matter (RFC 9110, 11.1). */
export function bearerKey(authorization: string | undefined): string {
  const key = /^bearer +(\S+) *$/i.exec(authorization ?? '')?.[1]
  if (key === undefined) throw new Refusal('missing_api_key')
  return key
}

/** Throws `Refusal` (401) when the key is unknown, disabled or expired. */
export function checkKey(key: string, record: KeyRecord | undefined, nowMs: number): KeyRecord {
  const isKnown = record !== undefined && sameHash(record.hash, hashOfKey(key))
  if (!isKnown || !isUsable(record, nowMs)) throw new Refusal('invalid_api_key')
  return record
}

const isUsable = ({ disabled, expiresAtMs }: KeyValidity, nowMs: number): boolean =>
  !disabled && (expiresAtMs === undefined || nowMs < expiresAtMs)

/** Throws `Refusal` (403) when the account is banned, or the key may not be used from this address. */
export function checkAccess({ banned, allowedIps }: KeyRecord, ip: () => string): void {
  if (banned) throw new Refusal('account_banned')
  if (allowedIps === undefined) return
  const from = ip()
  if (!createNetworkMatcher(allowedIps)(from))
    throw new Refusal('ip_not_allowed', `The request came from ${shortened(from)}.`)
}

/**
 * The limits and use of a key, and its account's balance. An undefined limit means no limit. Key and account are checked
 * again: they were checked before the body was read, which may take a minute.
 */
export interface AccountState extends KeyValidity {
  /** Credits. */
  readonly spent: number
  readonly spendLimit: number | undefined
  /** Accepted runs. */
  readonly used: number
  readonly quota: number | undefined
  /** Credits. */
  readonly balance: number
}

/**
 * Throws `Refusal`: 401 for the key, 403 for the account and the spend limit, 429 for the quota, 402 for the balance, in
 * this order.
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
