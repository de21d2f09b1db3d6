/** What people may set for a key on the console: the body of a request to the terms of the store. Pure. */
import type { KeyTermsBody } from '../../protocol/console.js'
import { shortened } from '../../protocol/text.js'
import type { KeyTerms } from '../store/account-store.js'
import { parseNetwork } from './networks.js'
import { refusalSaying } from './refusal.js'

const MAX_NAME_LENGTH = 100

/** As an administrator's: of 1 to 100 characters, without control characters, and without spaces at the ends. */
export const isPlainName = (name: string): boolean =>
  name !== '' &&
  name.length <= MAX_NAME_LENGTH &&
  name.trim() === name &&
  !/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(name)

const refuse = (sentence: string) => refusalSaying('invalid_input', sentence)

/** Throws `Refusal` (400). Only the fields that are present are in it. The types are checked. */
export function keyTermsOf(body: KeyTermsBody): Partial<KeyTerms> {
  const { name, disabled, spend_limit, quota, allowed_ips, expires_at } = body
  return {
    ...(name !== undefined && { name: keyNameOf(name) }),
    ...(disabled !== undefined && { disabled }),
    ...(spend_limit !== undefined && { spendLimit: spend_limit ?? undefined }),
    ...(quota !== undefined && { quota: quota ?? undefined }),
    ...(allowed_ips !== undefined && {
      allowedIps: allowed_ips === null ? undefined : networksOf(allowed_ips),
    }),
    ...(expires_at !== undefined && { expiresAtMs: expires_at === null ? undefined : timeOf(expires_at) }),
  }
}

/** Throws `Refusal` (400). */
export function keyNameOf(name: string): string {
  if (isPlainName(name)) return name
  throw refuse(
    `name must have 1 to ${MAX_NAME_LENGTH} characters, without control characters and without spaces at the ends.`,
  )
}

function networksOf(texts: readonly string[]): readonly string[] {
  const wrong = texts.find((text) => parseNetwork(text) === undefined)
  if (wrong === undefined) return texts
  throw refuse(`allowed_ips: "${shortened(wrong)}" is not an IP address or CIDR range.`)
}

const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/

function timeOf(text: string): number {
  const ms = TIME.test(text) ? Date.parse(text) : Number.NaN
  if (!Number.isNaN(ms)) return ms
  throw refuse(`expires_at: "${shortened(text)}" is not a time, such as 2026-01-31T12:00:00Z.`)
}
