/** The terms of a key, and names of accounts and keys. Pure. */
import type { RateLimit } from './rate.js'
import { invalidInput } from './refusal.js'

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

/** Throws `Refusal` (400) for an invalid name. */
export function keyNameOf(name: string): string {
  if (isPlainName(name)) return name
  throw invalidInput(
    `name must have 1 to ${MAX_NAME_LENGTH} characters, without invisible characters and without spaces at the ends.`,
  )
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
