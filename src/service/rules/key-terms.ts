/** Names of accounts and keys, and the conversion of a key's terms from a console request to the store. Pure. */
import type { KeyTermsBody } from '../../protocol/console.js'
import { MAX_TIME_MS } from '../../protocol/credentials.js'
import { shortened } from '../../protocol/text.js'
import type { KeyTerms } from '../store/account-store.js'
import { parseNetwork } from './networks.js'
import { invalidInput } from './refusal.js'
import { parseDay } from './times.js'

/** Converts the fields that are present; their types were checked before. Throws `Refusal` (400). */
export function keyTermsOf(body: KeyTermsBody, nowMs: number): Partial<KeyTerms> {
  const { name, disabled, spend_limit, quota, allowed_ips, expires_at } = body
  return {
    ...(name !== undefined && { name: keyNameOf(name) }),
    ...(disabled !== undefined && { disabled }),
    ...(spend_limit !== undefined && { spendLimit: spend_limit ?? undefined }),
    ...(quota !== undefined && { quota: quota ?? undefined }),
    ...(allowed_ips !== undefined && {
      allowedIps: allowed_ips === null ? undefined : networksOf(allowed_ips),
    }),
    ...(expires_at !== undefined && {
      expiresAtMs: expires_at === null ? undefined : expiryOf(expires_at, nowMs),
    }),
  }
}

/** Throws `Refusal` (400) for an invalid name. */
export function keyNameOf(name: string): string {
  if (isPlainName(name)) return name
  throw invalidInput(
    `name must have 1 to ${MAX_NAME_LENGTH} characters, without invisible characters and without spaces at the ends.`,
  )
}

function networksOf(texts: readonly string[]): readonly string[] {
  const wrong = texts.find((text) => parseNetwork(text) === undefined)
  if (wrong === undefined) return texts
  throw invalidInput(`allowed_ips: "${shortened(wrong)}" is not an IP address or CIDR range.`)
}

const TIME =
  /^(\d{4}-\d{2}-\d{2})T([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,9})?)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/

function expiryOf(text: string, nowMs: number): number {
  const [, day = ''] = TIME.exec(text) ?? []
  const ms = parseDay(day) === undefined ? Number.NaN : Date.parse(text)
  if (!(ms <= MAX_TIME_MS))
    throw invalidInput(`expires_at: "${shortened(text)}" is not a time, such as 2026-01-31T12:00:00Z.`)
  if (ms > nowMs) return ms
  throw invalidInput(`expires_at: ${text} is in the past. To stop a key, disable it.`)
}

export const MAX_NAME_LENGTH = 100

/** Invisible joiner inside an emoji: 👩‍💻 is a woman, the joiner and a laptop. Anywhere else it is refused. */
const JOINER_IN_EMOJI =
  /(?<=\p{Extended_Pictographic}(\p{Emoji_Modifier}|\ufe0f)?)\u200d(?=\p{Extended_Pictographic})/gu

/** Control, format, incomplete, private and unassigned characters, and line and paragraph separators. */
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}]/u

/**
 * Whether text can be the name of an account or key. With invisible characters, two names could look the same, or a
 * name could reverse the text around it.
 */
export const isPlainName = (name: string): boolean =>
  name !== '' &&
  name.length <= MAX_NAME_LENGTH &&
  name.trim() === name &&
  !INVISIBLE.test(name.replace(JOINER_IN_EMOJI, ''))
