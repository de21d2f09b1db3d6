/**
 * Emails and passwords of console users. A password is stored as text that names its derivation:
 * `scrypt$32768$8$1$<salt>$<key>`, with salt and key in base64url. A derivation takes about 110 ms and 32 MiB in a
 * thread of Node's pool, so only a few run at a time.
 */
import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { promisify } from 'node:util'
import { createSlots } from '../../host/slots.js'
import {
  hasForbiddenCharacter,
  MAX_PASSWORD_LENGTH,
  MIN_PASSWORD_LENGTH,
  normalizedPassword,
  passwordLength,
} from '../../protocol/credentials.js'
import { invalidInput, refusalSaying } from './refusal.js'

const SALT_BYTES = 16
const KEY_BYTES = 32

/**
 * Maximum number of derivations at a time. Node's pool has four threads, which also read files. A machine with two
 * cores keeps one core for requests.
 */
const MAX_AT_ONCE = Math.min(2, Math.max(1, availableParallelism() - 1))
/** Maximum number of waiting derivations. On two cores, this is a wait of about ten seconds. */
const MAX_WAITING = 100

interface Derivation {
  readonly cost: number
  readonly blockSize: number
  readonly parallelization: number
  readonly salt: Uint8Array
  readonly keyBytes: number
}

type Derive = (password: string, derivation: Derivation) => Promise<Uint8Array>

export interface Passwords {
  /** Returns the text to store. Throws `Refusal`: 503 when too many derivations wait. */
  store(password: string): Promise<string>
  /**
   * Returns false, after the same time, if `stored` is undefined or the password could not be set. Throws `Refusal`:
   * 503 when too many derivations wait.
   */
  matches(password: string, stored: string | undefined): Promise<boolean>
}

/** Throws `Refusal` (400) for a password that is not allowed. */
export function checkNewPassword(password: string): void {
  const problem = problemOf(password)
  if (problem !== undefined) throw invalidInput(`The password ${problem}.`)
}

function problemOf(password: string): string | undefined {
  if (hasForbiddenCharacter(password)) return 'has control characters or incomplete characters'
  const length = passwordLength(password)
  if (length < MIN_PASSWORD_LENGTH) return `has fewer than ${MIN_PASSWORD_LENGTH} characters`
  if (length > MAX_PASSWORD_LENGTH) return `has more than ${MAX_PASSWORD_LENGTH} characters`
  return undefined
}

/** Compared for an unknown email and a user without a password, to take the same time. No password matches it. */
const DUMMY = textOf(newDerivation(new Uint8Array(SALT_BYTES)), new Uint8Array(KEY_BYTES))

export function createPasswords(derive: Derive = deriveWithScrypt, atOnce = MAX_AT_ONCE): Passwords {
  const slots = createSlots(atOnce, {
    maxWaiting: MAX_WAITING,
    refusal: () =>
      refusalSaying('overloaded', 'Too many people are signing in at this moment. Try again later.'),
  })
  const derived = (password: string, derivation: Derivation) =>
    slots.use(() => derive(normalizedPassword(password), derivation))
  return {
    async store(password) {
      const derivation = newDerivation(randomBytes(SALT_BYTES))
      return textOf(derivation, await derived(password, derivation))
    },
    async matches(password, stored = DUMMY) {
      const { derivation, key } = parseStored(stored)
      const isEqual = timingSafeEqual(await derived(password, derivation), key)
      // scrypt pads a password with zeros, so it does not distinguish an empty password or zeros at the end.
      return isEqual && password !== '' && !hasForbiddenCharacter(password)
    },
  }
}

function newDerivation(salt: Uint8Array): Derivation {
  return { cost: 2 ** 15, blockSize: 8, parallelization: 1, salt, keyBytes: KEY_BYTES }
}

function textOf({ cost, blockSize, parallelization, salt }: Derivation, key: Uint8Array): string {
  const [saltText, keyText] = [salt, key].map((bytes) => Buffer.from(bytes).toString('base64url'))
  return ['scrypt', cost, blockSize, parallelization, saltText, keyText].join('$')
}

function parseStored(stored: string): { readonly derivation: Derivation; readonly key: Uint8Array } {
  const [, cost, blockSize, parallelization, salt = '', written = ''] =
    /^scrypt\$(\d+)\$(\d+)\$(\d+)\$([\w-]+)\$([\w-]+)$/.exec(stored) ?? []
  if (cost === undefined) throw new Error('a stored password has an unknown form')
  const key = Buffer.from(written, 'base64url')
  const derivation = {
    cost: Number(cost),
    blockSize: Number(blockSize),
    parallelization: Number(parallelization),
    salt: Buffer.from(salt, 'base64url'),
    keyBytes: key.byteLength,
  }
  return { derivation, key }
}

function deriveWithScrypt(
  password: string,
  { cost, blockSize, parallelization, salt, keyBytes }: Derivation,
): Promise<Uint8Array> {
  // Node's default limit is exactly the need of these parameters, without any reserve.
  const maxmem = 256 * cost * blockSize
  return scryptOf(password, salt, keyBytes, { cost, blockSize, parallelization, maxmem })
}

const scryptOf = promisify<string, Uint8Array, number, ScryptOptions, Uint8Array>(scrypt)

/** Maximum length of an email address (the path of RFC 5321). */
export const MAX_EMAIL_LENGTH = 254

/** Returns an email as it is stored. The service sends no mail: the email is the name for sign-in. */
export const storedEmail = (email: string): string => email.trim().toLowerCase()

/** Whether an email, as it is stored, is valid. */
export const isEmail = (email: string): boolean =>
  email.length <= MAX_EMAIL_LENGTH && /^[^@\s\p{C}]+@[^@\s\p{C}]+$/u.test(email)
