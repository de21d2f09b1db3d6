/** Checks the key of a request (CONTRACT 9). */
import { shortened } from '../../protocol/text.js'
import type { RateLimit } from '../rate/contract.js'
import { hashOfKey, sameHash } from '../secrets.js'
import { createNetworkMatcher } from './networks.js'
import { Refusal } from './refusal.js'

/** A stored key; only its hash is known. */
export interface KeyRecord {
  readonly id: number
  readonly accountId: number
  readonly hash: string
  readonly disabled: boolean
  readonly expiresAtMs: number | undefined
  /** Whether its account is banned. */
  readonly banned: boolean
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
  const isValid =
    record !== undefined &&
    sameHash(record.hash, hashOfKey(key)) &&
    !record.disabled &&
    (record.expiresAtMs === undefined || nowMs < record.expiresAtMs)
  if (!isValid) throw new Refusal('invalid_api_key')
  return record
}

/** Throws `Refusal` (403) when the account is banned, or the key may not be used from this address. */
export function checkAccess({ banned, allowedIps }: KeyRecord, ip: () => string): void {
  if (banned) throw new Refusal('account_banned')
  if (allowedIps === undefined) return
  const from = ip()
  if (!createNetworkMatcher(allowedIps)(from))
    throw new Refusal('ip_not_allowed', `The request came from ${shortened(from)}.`)
}

export const callerOf = ({ id, accountId }: KeyRecord): Caller => ({ keyId: id, accountId })
