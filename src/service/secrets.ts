/** Random keys, ids and tokens, and the hash by which a key is stored. */
import { hash, randomBytes, timingSafeEqual } from 'node:crypto'

/** Crockford's base 32 in lower case: no letter looks like a digit, and a double click selects the whole id. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const ID_LENGTH = 20

export const newKey = (): string => `rk_${randomBytes(32).toString('base64url')}`

/** The visible part of a key, to tell it from others: `rk_` and the next 6 of its 43 characters. */
export const prefixOfKey = (key: string): string => key.slice(0, 9)

/** Keys are stored only as this hash. They are long and random, so one round of SHA-256 is enough. */
export const hashOfKey = (key: string): string => hash('sha256', key, 'hex')

export const sameHash = (one: string, other: string): boolean =>
  one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))

/** 100 random bits. */
export const newRunId = (): string =>
  `run_${[...randomBytes(ID_LENGTH)].map((byte) => ALPHABET[byte % ALPHABET.length]).join('')}`

export const newWorkerId = (): string => `worker_${randomBytes(12).toString('hex')}`

/** 240 random bits: everyone with an output's URL can read it, so it must not be guessable. */
export const newToken = (): string => randomBytes(30).toString('base64url')

/** 256 random bits: tokens of sessions and links, and codes. They too are stored only as `hashOfKey`. */
export const newSecret = (): string => randomBytes(32).toString('base64url')
