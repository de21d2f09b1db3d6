/** Generates random keys, ids and tokens, and hashes keys for storage. */
import { hash, randomBytes } from 'node:crypto'

/** Crockford's base 32 in lower case: no letter looks like a digit, and a double-click selects the whole id. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const ID_LENGTH = 20

/** A new API key, with the hash and the visible part that are stored. The key itself is shown once. */
export const newKey = () => keyOf(randomBytes(32))

/** The API key of 256 random bits. */
export function keyOf(bits: Buffer) {
  const apiKey = `rk_${bits.toString('base64url')}`
  return { apiKey, hash: hashOfKey(apiKey), prefix: prefixOfKey(apiKey) }
}

/** Visible part of a key, to recognize it in a list: `rk_` and the next 6 of its 43 characters. */
const prefixOfKey = (key: string): string => key.slice(0, 9)

/** Hashes a key. Only the hash is stored. Keys are long and random, so one round of SHA-256 is enough. */
export const hashOfKey = (key: string): string => hash('sha256', key, 'hex')

/** A run id with 100 random bits. */
export const newRunId = (): string =>
  `run_${[...randomBytes(ID_LENGTH)].map((byte) => ALPHABET[byte % ALPHABET.length]).join('')}`

export const newWorkerId = (): string => `worker_${randomBytes(12).toString('hex')}`

export const isWorkerId = (name: string): boolean => /^worker_[0-9a-f]{24}$/.test(name)

/** The token of a run's outputs, with 240 random bits: anyone who has an output's URL can read the output. */
export const newToken = (runId: string): string => `${runId}.${randomBytes(30).toString('base64url')}`

/** 256 random bits, for sessions and sign-in links. Like keys, they are stored only as `hashOfKey`. */
export const newSecret = (): string => randomBytes(32).toString('base64url')
