/** What cannot be guessed: keys, run ids, addresses of outputs. And how a key is recognised without being kept. */
import { hash, randomBytes, timingSafeEqual } from 'node:crypto'

/** Crockford's base 32 in lower case: no letter that reads like a digit, and a double click takes the whole id. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const ID_LENGTH = 20

export const newKey = (): string => `rk_${randomBytes(32).toString('base64url')}`

/** The only form in which a key is stored. It is long and random, so one round of SHA-256 is enough. */
export const hashOfKey = (key: string): string => hash('sha256', key, 'hex')

export const sameHash = (one: string, other: string): boolean =>
  one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))

/** 100 random bits. */
export const newRunId = (): string =>
  `run_${[...randomBytes(ID_LENGTH)].map((byte) => ALPHABET[byte % ALPHABET.length]).join('')}`

export const newWorkerId = (): string => `worker_${randomBytes(12).toString('hex')}`

/** 240 random bits: whoever holds an output's address may read it, so nobody else may find it. */
export const newToken = (): string => randomBytes(30).toString('base64url')
