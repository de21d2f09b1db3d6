/** Who is asking: the first check of every request (CONTRACT 9). */
import { hashOfKey, sameHash } from '../secrets.js'
import { Refusal } from './refusal.js'

/** A key as it is kept: never the key itself. */
export interface KeyRecord {
  readonly id: number
  readonly accountId: number
  readonly hash: string
  readonly disabled: boolean
  readonly expiresAtMs: number | undefined
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

/** Throws `Refusal` unless the record belongs to the key and the key may be used now. */
export function callerOf(key: string, record: KeyRecord | undefined, nowMs: number): Caller {
  const good =
    record !== undefined &&
    sameHash(record.hash, hashOfKey(key)) &&
    !record.disabled &&
    (record.expiresAtMs === undefined || nowMs < record.expiresAtMs)
  if (!good) throw new Refusal('invalid_api_key')
  return { keyId: record.id, accountId: record.accountId }
}
