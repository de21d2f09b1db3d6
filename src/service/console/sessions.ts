/**
 * Sign-in and sessions of users, with a password or a link. The browser has a random token, of which only the hash is
 * stored. Also creates the first user of a service.
 */
import type { Clock } from '../../host/clock.js'
import type { NewPassword, Session, SessionList, SignIn } from '../../protocol/console.js'
import type { Kind } from '../../protocol/models.js'
import { printable, shortened } from '../../protocol/text.js'
import { FIRST_ACCOUNT } from '../key-lookup.js'
import { idIn } from '../rules/console-requests.js'
import { checkNewPassword, type Passwords, storedEmail } from '../rules/credentials.js'
import { invalidInput, Refusal, refusalSaying } from '../rules/refusal.js'
import { hashOfKey, newSecret } from '../secrets.js'
import type { ConsoleStart } from '../service.js'
import type { CurrentSession, SessionRecord, UserRecord, UserStore } from '../store/console-store.js'
import type { ServiceStore } from '../store/contract.js'
import type { Limits } from './limits.js'

export const SESSION_MS = 7 * 24 * 3_600_000
/** Minimum time between two extensions of a session: every use extends it, but not every request may write. */
const EXTEND_EVERY_MS = 60_000
const MAX_USER_AGENT_LENGTH = 300
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
  readonly record: CurrentSession
}

interface FoundSession {
  readonly record: SessionRecord
  /** Whether the session now ends later. Then the cookie must too. */
  readonly isExtended: boolean
}

/**
 * Functions that begin a session end the sender's current one. Functions that begin or end sessions or change the password
 * count toward the authentication limit, except `end`.
 */
export interface Sessions {
  /** Throws `Refusal`: 401, 429, 503. */
  signIn(body: SignIn, sender: Sender): Promise<BegunSession>
  /** Throws `Refusal`: 401, 429. */
  useLink(token: string, sender: Sender): Promise<BegunSession>
  /** Throws `Refusal`: 401; 429 only without a session. */
  signOut(sender: Sender, everywhere: boolean): Promise<void>
  /** Throws `Refusal`: 400, 401, 429, 503. */
  setPassword(sender: Sender, body: NewPassword): Promise<CurrentSession>
  describe(session: CurrentSession): Promise<Session>
  /** Returns undefined if the token is missing, unknown or expired. */
  find(token: string | undefined): Promise<FoundSession | undefined>
  list(current: SessionRecord): Promise<SessionList>
  /** Ends a session of this user. Throws `Refusal` (404) for any other `id`. */
  end(userId: number, id: string): Promise<void>
}

interface SessionsOptions {
  readonly store: ServiceStore
  readonly clock: Clock
  readonly passwords: Passwords
  readonly limits: Limits
  readonly models: Readonly<Record<Kind, string>>
  baseUrl(): string
  onError(error: unknown): void
}

export function createSessions(options: SessionsOptions): Sessions {
  const { store, clock, passwords, limits, models, baseUrl, onError } = options
  const extending = new Set<string>()

  /** Begins a session with a new token. A token that an attacker put into the browser is never signed in. */
  async function begin(user: UserRecord, sender: Sender, fromLink: boolean): Promise<BegunSession> {
    const token = newSecret()
    const nowMs = clock.now()
    const begun = { hash: hashOfKey(token), fromLink, expiresAtMs: nowMs + SESSION_MS }
    const userAgent = sender.userAgent && shortened(printable(sender.userAgent), MAX_USER_AGENT_LENGTH)
    await store.addSession({ ...begun, userId: user.id, address: sender.address, userAgent, nowMs })
    if (sender.session !== undefined) await store.endSession(sender.session.hash)
    return { token, record: { ...begun, user } }
  }

  /** Does not wait for the write: a database that cannot be written can still be read. */
  function extend(hash: string, usedAtMs: number, expiresAtMs: number): void {
    extending.add(hash)
    store
      .extendSession(hash, { usedAtMs, expiresAtMs })
      .catch(onError)
      .finally(() => extending.delete(hash))
  }

  return {
    async signIn({ email: written, password }, sender) {
      const email = storedEmail(written)
      await limits.countAuthentication(sender.address, email)
      const user = await store.findUser(email)
      const isRight = await passwords.matches(password, user?.password)
      if (user === undefined || !isRight) throw new Refusal('invalid_credentials')
      const begun = await begin(user, sender, false)
      // Another request may have changed the password, which ends all sessions except this new one.
      if ((await store.findUser(email))?.password === user.password) return begun
      await store.endSession(begun.record.hash)
      throw new Refusal('invalid_credentials')
    },

    async useLink(token, sender) {
      await limits.countAuthentication(sender.address)
      const user = await store.useLink(hashOfKey(token), clock.now())
      if (user === undefined) throw new Refusal('invalid_link')
      return await begin(user, sender, true)
    },

    async signOut({ address, session }, everywhere) {
      try {
        await limits.countAuthentication(address)
      } catch (error) {
        // A session can always be ended, even if others have used up the limit of the address.
        if (session === undefined) throw error
      }
      if (session === undefined) throw new Refusal('not_signed_in')
      await (everywhere ? store.endSessions(session.user.id) : store.endSession(session.hash))
    },

    async setPassword({ address, session }, { current, password }) {
      await limits.countPasswordChange(address, session?.user.id)
      if (session === undefined) throw new Refusal('not_signed_in')
      checkNewPassword(password)
      const { user, fromLink, hash } = session
      if (!fromLink) {
        if (current === undefined) throw invalidInput('The current password is missing.')
        if (!(await passwords.matches(current, user.password)))
          throw refusalSaying('invalid_credentials', 'The current password is not correct.')
      }
      const stored = await passwords.store(password)
      await store.setPassword(user.id, stored, hash)
      return { ...session, user: { ...user, password: stored }, fromLink: false }
    },

    async describe(session) {
      const account = await store.findAccount(session.user.accountId)
      // A user's account cannot be removed, so the user and the session were removed.
      if (account === undefined) throw new Refusal('not_signed_in')
      return { ...sessionBody(session), account, models, base_url: baseUrl() }
    },

    async find(token) {
      if (token === undefined) return undefined
      const hash = hashOfKey(token)
      const nowMs = clock.now()
      const record = await store.findSession(hash, nowMs)
      if (record === undefined) return undefined
      const isDue = nowMs - record.usedAtMs >= EXTEND_EVERY_MS && !extending.has(hash)
      if (!isDue) return { record, isExtended: false }
      const expiresAtMs = nowMs + SESSION_MS
      extend(hash, nowMs, expiresAtMs)
      return { record: { ...record, usedAtMs: nowMs, expiresAtMs }, isExtended: true }
    },

    async list({ id, user }) {
      const records = await store.listSessions(user.id, clock.now())
      return { sessions: records.map((each) => ({ ...listedBody(each), current: each.id === id })) }
    },

    async end(userId, id) {
      if (!(await store.endSessionById(userId, idIn(id)))) throw new Refusal('not_found')
    },
  }
}

const sessionBody = (session: CurrentSession) => ({
  id: sessionIdOf(session),
  email: session.user.email,
  can_set_password: session.fromLink,
  has_password: session.user.password !== undefined,
  expires_at: new Date(session.expiresAtMs).toISOString(),
})

const listedBody = ({ id, createdAtMs, usedAtMs, address, userAgent }: SessionRecord) => ({
  id,
  created_at: new Date(createdAtMs).toISOString(),
  last_used_at: new Date(usedAtMs).toISOString(),
  address: address ?? null,
  user_agent: userAgent ?? null,
})

/** Id of a session for the page: a part of the hash, from which the token cannot be derived. */
export const sessionIdOf = ({ hash }: CurrentSession): string => hash.slice(0, 32)

/** Adds a single-use sign-in link for this user, and returns its token. */
export async function addLink(store: UserStore, userId: number, nowMs: number): Promise<string> {
  const token = newSecret()
  await store.addLink({ hash: hashOfKey(token), userId, nowMs, expiresAtMs: nowMs + LINK_MS })
  return token
}

/**
 * Creates the first user on the first start with new data. Existing data may belong to others, so an administrator must
 * add its users.
 */
export async function startConsole(
  store: ServiceStore,
  nowMs: number,
  isFirstStart: boolean,
): Promise<ConsoleStart> {
  if (isFirstStart) {
    const accountId = await store.ensureAccount({ ...FIRST_ACCOUNT, nowMs })
    const userId = await store.addUser({ email: FIRST_EMAIL, accountId, nowMs })
    if (userId !== undefined) return { linkToken: await addLink(store, userId, nowMs), hasUsers: true }
  }
  return { linkToken: undefined, hasUsers: (await store.listUsers(nowMs)).length > 0 }
}
