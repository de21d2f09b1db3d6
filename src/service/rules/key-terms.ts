/** The terms of a key, the reader of their texts, and names of accounts and keys. Pure. */
import { usageError } from '../../errors.js'
import { MAX_CREDITS } from '../../protocol/limits.js'
import { shortened } from '../../protocol/text.js'
import { DAY_MS, parseDay, parseDuration } from '../../protocol/units.js'
import { parseNetwork } from './networks.js'
import type { RateLimit } from './rate.js'

/**
 * Settings of a key that an administrator can change. Undefined means no limit, any address, no expiry, or the
 * published rate limit.
 */
export interface KeyTerms {
  readonly name: string
  readonly disabled: boolean
  /** Lifetime limit in credits. */
  readonly spendLimit: number | undefined
  /** Lifetime limit in runs. */
  readonly quota: number | undefined
  /** IP addresses and CIDR ranges that may use the key. */
  readonly allowedIps: readonly string[] | undefined
  readonly expiresAtMs: number | undefined
  readonly rate: RateLimit | undefined
}

/** Texts of terms, from a form or from flags. An empty text removes a limit. */
type KeyTexts = Readonly<
  Partial<
    Record<'name' | 'spend_limit' | 'quota' | 'allowed_ips' | 'rate' | 'expires_at', string | undefined>
  >
>

/** Reads the given texts. `names`: how an error names a text. Default: as it is. Throws `RushesError` (usage). */
export function readKeyTerms(
  texts: KeyTexts,
  nowMs: number,
  names: Readonly<Partial<Record<keyof KeyTexts, string>>> = {},
): Partial<KeyTerms> {
  const { name, spend_limit, quota, allowed_ips, rate, expires_at } = texts
  const nameOf = (field: keyof KeyTexts) => names[field] ?? field
  return {
    ...(name !== undefined && { name: checkName(name, 'a key') }),
    ...(spend_limit !== undefined && { spendLimit: readLimit(spend_limit, nameOf('spend_limit')) }),
    ...(quota !== undefined && { quota: readLimit(quota, nameOf('quota')) }),
    ...(allowed_ips !== undefined && { allowedIps: readNetworks(allowed_ips, nameOf('allowed_ips')) }),
    ...(rate !== undefined && { rate: readRate(rate, nameOf('rate')) }),
    ...(expires_at !== undefined && { expiresAtMs: readExpiry(expires_at, nameOf('expires_at'), nowMs) }),
  }
}

function readLimit(text: string, what: string): number | undefined {
  if (text === '') return undefined
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (value <= MAX_CREDITS) return value
  throw usageError(`${what}: "${shortened(text)}" is not a whole number from 0 to ${MAX_CREDITS}.`)
}

/** Of a key. */
const MAX_ALLOWED_IPS = 100

function readNetworks(text: string, what: string): readonly string[] | undefined {
  const networks = text.split(/[\s,]+/).filter(Boolean)
  const wrong = networks.find((each) => parseNetwork(each) === undefined)
  if (wrong !== undefined)
    throw usageError(
      `${what}: "${shortened(wrong)}" is not an IP address or CIDR range.`,
      'Examples: 203.0.113.7, 203.0.113.0/24, 2001:db8::1, 2001:db8::/32',
    )
  if (networks.length > MAX_ALLOWED_IPS)
    throw usageError(`${what}: at most ${MAX_ALLOWED_IPS} addresses are possible.`)
  return networks.length === 0 ? undefined : networks
}

/** A rate limiter stores the time of each request in the window, so this bounds its memory per key. */
const MAX_REQUESTS = 10_000
const MIN_WINDOW_MS = 100
const MAX_WINDOW_MS = 3_600_000
const RATE_EXAMPLES = 'Examples: 100/10s, 600/1m.'

/** Reads a rate such as `100/10s`. */
function readRate(text: string, what: string): RateLimit | undefined {
  if (text === '') return undefined
  const [, count = '', window = ''] = /^\s*(\d+)\s*\/\s*(.+)$/.exec(text) ?? []
  if (count === '') throw usageError(`${what}: "${text}" is not a valid rate.`, RATE_EXAMPLES)
  const requests = Number(count)
  const windowMs = parseDuration(window, what, RATE_EXAMPLES)
  if (requests < 1 || requests > MAX_REQUESTS || windowMs < MIN_WINDOW_MS || windowMs > MAX_WINDOW_MS)
    throw usageError(
      `${what}: ${text} is out of range.`,
      `Use 1 to ${MAX_REQUESTS} requests in ${MIN_WINDOW_MS}ms to 1h.`,
    )
  return { requests, windowMs }
}

/** Reads a day, at whose end in UTC the key expires, or a lifetime such as `30d`. */
function readExpiry(text: string, what: string, nowMs: number): number | undefined {
  if (text === '') return undefined
  const day = parseDay(text)
  const examples = 'Examples: 90d, 12h, 2030-01-31.'
  const ms = day === undefined ? nowMs + parseDuration(text, what, examples) : day + DAY_MS - 1
  if (ms > nowMs) return ms
  throw usageError(`${what}: with ${text}, the key would expire immediately.`, 'To stop a key, disable it.')
}

const MAX_NAME_LENGTH = 100

/** Control, format, incomplete, private and unassigned characters, and line and paragraph separators. */
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}]/u

/**
 * Whether text can be the name of an account or key. With invisible characters, two names could look the same, or a
 * name could reverse the text around it.
 */
export const isPlainName = (name: string): boolean =>
  name !== '' && name.length <= MAX_NAME_LENGTH && name.trim() === name && !INVISIBLE.test(name)

/** Returns the name. Throws `RushesError` (usage) if it is not valid. `what`: for example `a key`. */
export function checkName(name: string, what: string): string {
  if (isPlainName(name)) return name
  throw usageError(
    `"${name}" is not a valid name for ${what}.`,
    `Use 1 to ${MAX_NAME_LENGTH} characters, without invisible characters and without spaces at the ends.`,
  )
}
