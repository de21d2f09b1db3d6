/**
 * Sign-in and sessions of users, with a password or a link. The browser has a random token, of which only the hash is
 * stored. Also creates the first user of a service.
 */
import { hash } from 'node:crypto'
import type { Clock } from '../../host/clock.js'
import { AUTH_LIMIT, SESSION_CHECK_LIMIT } from '../../protocol/limits.js'
import { shortened } from '../../protocol/text.js'
import { isoTime } from '../../protocol/units.js'
import { FIRST_ACCOUNT } from '../http/key-lookup.js'
import { checkNewPassword, type Passwords, storedEmail } from '../rules/credentials.js'
import { clientOf } from '../rules/networks.js'
import type { RateLimit, RateLimiter } from '../rules/rate.js'
import { invalidInput, Refusal, refusalSaying } from '../rules/refusal.js'
import { hashOfKey, newSecret } from '../rules/secrets.js'
import type { Store } from '../store/index.js'
import type { SessionRecord, UserRecord } from '../store/users.js'

export const SESSION_MS = 7 * 24 * 3_600_000
/** Minimum time between two extensions of a session: every use extends it, but not every request may write. */
const EXTEND_EVERY_MS = 60_000
const MAX_USER_AGENT_LENGTH = 300
/** Lifetime of a link that an administrator creates. */
const LINK_MS = 15 * 60_000
const FIRST_EMAIL = 'owner@localhost'

/** The browser or program that sends a request. */
export interface Sender {
  readonly address: string
  readonly userAgent: string | undefined
  /** Its current session. */
  readonly session: SessionRecord | undefined
}

export interface BegunSession {
  readonly token: string
  readonly record: SessionRecord
}

interface FoundSession {
  readonly record: SessionRecord
  /** Whether the session now ends later. Then the cookie must too. */
  readonly isExtended: boolean
}

interface SessionsOptions {
  readonly store: Store
  readonly clock: Clock
  readonly passwords: Passwords
  readonly rateLimiter: RateLimiter
  onError(error: unknown): void
}

/**
 * Methods that begin a session end the sender's current one. Methods that begin or end sessions or change the password
 * count toward the authentication limit (429), wrong or right. Refused requests do not count.
 */
export class Sessions {
  readonly #options: SessionsOptions

  constructor(options: SessionsOptions) {
    this.#options = options
  }

  /** Throws `Refusal`: 401, 429, 503. */
  async signIn(written: string, password: string, sender: Sender): Promise<BegunSession> {
    const { store, passwords } = this.#options
    const email = storedEmail(written)
    // Hash the email: it can have any length, and must not be stored for the limit.
    await this.#take(AUTH_LIMIT, byAddress(sender), `auth email ${hash('sha256', email, 'hex')}`)
    const user = await store.findUser(email)
    const isRight = await passwords.matches(password, user?.password)
    if (user === undefined || !isRight) throw new Refusal('invalid_credentials')
    const begun = await this.#begin(user, sender, false)
    // Another request may have changed the password, which ends all sessions except this new one.
    if ((await store.findUser(email))?.password === user.password) return begun
    await store.endSession(begun.record.hash)
    throw new Refusal('invalid_credentials')
  }

  /** Throws `Refusal`: 401, 429. */
  async useLink(token: string, sender: Sender): Promise<BegunSession> {
    const { store, clock } = this.#options
    await this.#take(AUTH_LIMIT, byAddress(sender))
    const user = await store.useLink(hashOfKey(token), clock.now())
    if (user === undefined) throw new Refusal('invalid_link')
    return await this.#begin(user, sender, true)
  }

  /** Throws `Refusal`: 401; 429 only without a session. */
  async signOut(sender: Sender, everywhere: boolean): Promise<void> {
    const { store } = this.#options
    const { session } = sender
    try {
      await this.#take(AUTH_LIMIT, byAddress(sender))
    } catch (error) {
      // A session can always be ended, even if others have used up the limit of the address.
      if (session === undefined) throw error
    }
    if (session === undefined) throw new Refusal('not_signed_in')
    await (everywhere ? store.endSessions(session.user.id) : store.endSession(session.hash))
  }

  /** Throws `Refusal`: 400, 401, 429, 503. */
  async setPassword(sender: Sender, password: string, current: string | undefined): Promise<SessionRecord> {
    const { store, passwords } = this.#options
    const { session } = sender
    // Not by email: strangers who try the email's password must not prevent the user from changing it.
    await this.#take(
      AUTH_LIMIT,
      byAddress(sender),
      ...(session === undefined ? [] : [`password user ${session.user.id}`]),
    )
    if (session === undefined) throw new Refusal('not_signed_in')
    checkNewPassword(password)
    const { user, fromLink } = session
    if (!fromLink) {
      if (current === undefined) throw invalidInput('The current password is missing.')
      if (!(await passwords.matches(current, user.password)))
        throw refusalSaying('invalid_credentials', 'The current password is not correct.')
    }
    const stored = await passwords.store(password)
    await store.setPassword(user.id, stored, session.hash)
    return { ...session, user: { ...user, password: stored }, fromLink: false }
  }

  /** Throws `Refusal`: 429. */
  countCheck(sender: Sender): Promise<void> {
    return this.#take(
      SESSION_CHECK_LIMIT,
      `session ${sender.session?.hash ?? `address ${clientOf(sender.address)}`}`,
    )
  }

  /** The session as the endpoints answer it. */
  async describe(session: SessionRecord): Promise<object> {
    const account = await this.#options.store.findAccount(session.user.accountId)
    // A user's account cannot be removed, so the user and the session were removed.
    if (account === undefined) throw new Refusal('not_signed_in')
    return {
      email: session.user.email,
      account,
      can_set_password: session.fromLink,
      has_password: session.user.password !== undefined,
      expires_at: isoTime(session.expiresAtMs),
    }
  }

  /** Returns undefined if the token is missing, unknown or expired. */
  async find(token: string | undefined): Promise<FoundSession | undefined> {
    const { store, clock, onError } = this.#options
    if (token === undefined) return undefined
    const hash = hashOfKey(token)
    const nowMs = clock.now()
    const record = await store.findSession(hash, nowMs)
    if (record === undefined) return undefined
    if (nowMs - record.usedAtMs < EXTEND_EVERY_MS) return { record, isExtended: false }
    const extended = { usedAtMs: nowMs, expiresAtMs: nowMs + SESSION_MS }
    // Does not wait for the write: a database that cannot be written can still be read.
    store.extendSession(hash, extended).catch(onError)
    return { record: { ...record, ...extended }, isExtended: true }
  }

  async #take(limit: RateLimit, ...keys: readonly string[]): Promise<void> {
    if (!(await this.#options.rateLimiter.take(keys, limit)))
      throw new Refusal('RATE_LIMITED', 'Wait a minute, then try again.')
  }

  /** Begins a session with a new token. A token that an attacker put into the browser is never signed in. */
  async #begin(user: UserRecord, sender: Sender, fromLink: boolean): Promise<BegunSession> {
    const { store, clock } = this.#options
    const token = newSecret()
    const nowMs = clock.now()
    const hash = hashOfKey(token)
    const userAgent = sender.userAgent && shortened(sender.userAgent, MAX_USER_AGENT_LENGTH)
    const begun = { hash, userId: user.id, fromLink, nowMs, expiresAtMs: nowMs + SESSION_MS }
    await store.addSession({ ...begun, address: sender.address, userAgent })
    if (sender.session !== undefined) await store.endSession(sender.session.hash)
    const record = await store.findSession(hash, nowMs)
    // The user was removed.
    if (record === undefined) throw new Refusal('not_signed_in')
    return { token, record }
  }
}

/** Keys in the rate limiter begin with a word, to differ from API keys, which have a number. */
const byAddress = ({ address }: Sender): string => `auth address ${clientOf(address)}`

/** Adds a single-use sign-in link for this user, and returns its token. */
export async function addLink(store: Pick<Store, 'addLink'>, userId: number, nowMs: number): Promise<string> {
  const token = newSecret()
  await store.addLink({ hash: hashOfKey(token), userId, nowMs, expiresAtMs: nowMs + LINK_MS })
  return token
}

/** The path of a sign-in link. The token works once, so a log that has it is of little use. */
export const linkPath = (token: string): string => `/link/${token}`

export interface ConsoleStart {
  /** Token of a single-use sign-in link for the first user. Set only on the first start. */
  readonly linkToken: string | undefined
}

/**
 * Creates the first user on the first start with new data. Existing data may belong to others, so an administrator must
 * add its users.
 */
export async function startConsole(
  store: Store,
  nowMs: number,
  isFirstStart: boolean,
): Promise<ConsoleStart> {
  if (isFirstStart) {
    const accountId = await store.ensureAccount({ ...FIRST_ACCOUNT, nowMs })
    const userId = await store.addUser({ email: FIRST_EMAIL, accountId, nowMs })
    if (userId !== undefined) return { linkToken: await addLink(store, userId, nowMs) }
  }
  return { linkToken: undefined }
}
