/**
 * Emails and passwords of console users. A password is stored as text that names its derivation:
 * `scrypt$32768$8$1$<salt>$<key>`, with salt and key in base64url. A derivation takes about 110 ms and 32 MiB in a
 * thread of Node's pool, so only a few run at a time.
 */
import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { promisify } from 'node:util'
import { createSlots } from '../../host/slots.js'
import { MIN_PASSWORD_LENGTH } from '../../protocol/limits.js'
import { invalidInput, refusalSaying } from './refusal.js'

const SALT_BYTES = 16
const KEY_BYTES = 32
/** Node's default of `maxmem` is exactly the need of these parameters, without any reserve. */
const SCRYPT = { cost: 2 ** 15, blockSize: 8, parallelization: 1, maxmem: 2 ** 26 }

/**
 * Maximum number of derivations at a time. Node's pool has four threads, which also read files. A machine with two
 * cores keeps one core for requests.
 */
const MAX_AT_ONCE = Math.min(2, Math.max(1, availableParallelism() - 1))
/** Maximum number of waiting derivations. On two cores, this is a wait of about ten seconds. */
const MAX_WAITING = 100

/** Returns the key of 32 bytes. */
type Derive = (password: string, salt: Uint8Array) => Promise<Uint8Array>

export interface Passwords {
  /** Returns the text to store. Throws `Refusal`: 503 when too many derivations wait. */
  store(password: string): Promise<string>
  /**
   * Returns false, after the same time, if `stored` is undefined or the password could not be set. Throws `Refusal`:
   * 503 when too many derivations wait.
   */
  matches(password: string, stored: string | undefined): Promise<boolean>
}

const MAX_PASSWORD_LENGTH = 1_000

/**
 * Returns the form of a password that is stored. The same characters in different Unicode forms are the same password.
 */
const normalizedPassword = (password: string): string => password.normalize('NFKC')

/**
 * Returns whether a password contains control characters or unpaired surrogates: users cannot type them, and the key
 * derivation treats some of them as equal.
 */
const hasForbiddenCharacter = (password: string): boolean => /[\p{Cc}\p{Cs}]/u.test(password)

/** Throws `Refusal` (400) for a password that is not allowed. */
export function checkNewPassword(password: string): void {
  const problem = passwordProblem(password)
  if (problem !== undefined) throw invalidInput(`The password ${problem}.`)
}

function passwordProblem(password: string): string | undefined {
  if (hasForbiddenCharacter(password)) return 'has control characters or incomplete characters'
  const { length } = [...password]
  if (length < MIN_PASSWORD_LENGTH) return `has fewer than ${MIN_PASSWORD_LENGTH} characters`
  if (length > MAX_PASSWORD_LENGTH) return `has more than ${MAX_PASSWORD_LENGTH} characters`
  return undefined
}

/** Compared for an unknown email and a user without a password, to take the same time. No password matches it. */
const DUMMY = hashText(new Uint8Array(SALT_BYTES), new Uint8Array(KEY_BYTES))

export function createPasswords(derive: Derive = deriveWithScrypt, atOnce = MAX_AT_ONCE): Passwords {
  const slots = createSlots(atOnce, {
    maxWaiting: MAX_WAITING,
    refusal: () =>
      refusalSaying('overloaded', 'Too many people are signing in at this moment. Try again later.'),
  })
  const derived = (password: string, salt: Uint8Array) =>
    slots.use(() => derive(normalizedPassword(password), salt))
  return {
    async store(password) {
      const salt = randomBytes(SALT_BYTES)
      return hashText(salt, await derived(password, salt))
    },
    async matches(password, stored = DUMMY) {
      const [, salt = '', key] = STORED.exec(stored) ?? []
      if (key === undefined) throw new Error('a stored password has an unknown form')
      const own = await derived(password, Buffer.from(salt, 'base64url'))
      // scrypt pads a password with zeros, so it does not distinguish an empty password or zeros at the end.
      const isPossible = password !== '' && !hasForbiddenCharacter(password)
      return timingSafeEqual(own, Buffer.from(key, 'base64url')) && isPossible
    },
  }
}

const STORED = /^scrypt\$32768\$8\$1\$([\w-]{22})\$([\w-]{43})$/

function hashText(salt: Uint8Array, key: Uint8Array): string {
  const [saltText, keyText] = [salt, key].map((bytes) => Buffer.from(bytes).toString('base64url'))
  return ['scrypt', SCRYPT.cost, SCRYPT.blockSize, SCRYPT.parallelization, saltText, keyText].join('$')
}

const scryptOf = promisify<string, Uint8Array, number, ScryptOptions, Uint8Array>(scrypt)

function deriveWithScrypt(password: string, salt: Uint8Array): Promise<Uint8Array> {
  return scryptOf(password, salt, KEY_BYTES, SCRYPT)
}

/** Maximum length of an email address (the path of RFC 5321). */
const MAX_EMAIL_LENGTH = 254

/** Returns an email as it is stored. The service sends no mail: the email is the name for sign-in. */
export const storedEmail = (email: string): string => email.trim().toLowerCase()

/** Whether an email, as it is stored, is valid. */
export const isEmail = (email: string): boolean =>
  email.length <= MAX_EMAIL_LENGTH && /^[^@\s\p{C}]+@[^@\s\p{C}]+$/u.test(email)
