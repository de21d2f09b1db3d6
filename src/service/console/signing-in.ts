/** Passwords, sign-in links and sessions, without HTTP. Each of these counts in the limit of the authentication endpoints. */
import type { Clock } from '../../host/clock.js'
import type { NewPassword, Session, SignIn } from '../../protocol/console.js'
import type { Kind } from '../../protocol/models.js'
import { storedEmail } from '../rules/email.js'
import { checkNewPassword, type Passwords } from '../rules/password.js'
import { Refusal, refusalSaying } from '../rules/refusal.js'
import { hashOfKey } from '../secrets.js'
import type { ConsoleStore } from '../store/console-store.js'
import type { SessionRecord, UserStore } from '../store/user-store.js'
import type { Limits } from './limits.js'
import { type BegunSession, type Client, type Sessions, sessionIdOf } from './sessions.js'

/** What an answer about a session needs of it. */
export type CurrentSession = BegunSession['record']

export interface SigningIn {
  /** `old`: the session that the browser has, which ends. Throws `Refusal`: 401, 429, 503. */
  signIn(body: SignIn, client: Client, old: SessionRecord | undefined): Promise<BegunSession>
  /** Throws `Refusal`: 401, 429. */
  useLink(token: string, client: Client, old: SessionRecord | undefined): Promise<BegunSession>
  /** Throws `Refusal`: 401, and 429 only without a session. */
  signOut(session: SessionRecord | undefined, client: Client, everywhere: boolean): Promise<void>
  /** Throws `Refusal`: 400, 401, 429, 503. */
  setPassword(session: SessionRecord | undefined, client: Client, body: NewPassword): Promise<CurrentSession>
  describe(session: CurrentSession): Promise<Session>
}

export interface SigningInOptions {
  readonly store: Pick<UserStore, 'findUser' | 'useLink' | 'setPassword' | 'endSession' | 'endSessions'> &
    Pick<ConsoleStore, 'findAccount'>
  readonly clock: Pick<Clock, 'now'>
  readonly passwords: Passwords
  readonly sessions: Sessions
  readonly limits: Pick<Limits, 'countAuthentication' | 'countPasswordChange'>
  readonly models: Readonly<Record<Kind, string>>
  baseUrl(): string
}

export function createSigningIn({
  store,
  clock,
  passwords,
  sessions,
  limits,
  models,
  baseUrl,
}: SigningInOptions): SigningIn {
  /** Always with a new token: one that somebody else put into the browser is never signed in. */
  async function begin(
    user: SessionRecord['user'],
    client: Client,
    fromLink: boolean,
    old: SessionRecord | undefined,
  ): Promise<BegunSession> {
    const begun = await sessions.begin(user, client, fromLink)
    if (old !== undefined) await store.endSession(old.hash)
    return begun
  }

  return {
    async signIn({ email: written, password }, client, old) {
      const email = storedEmail(written)
      await limits.countAuthentication(client.address, email)
      const user = await store.findUser(email)
      const isRight = await passwords.matches(password, user?.password)
      if (user === undefined || !isRight) throw new Refusal('invalid_credentials')
      const begun = await begin(user, client, false, old)
      // The password may have been changed meanwhile, which ends all sessions but this one.
      if ((await store.findUser(email))?.password === user.password) return begun
      await store.endSession(begun.record.hash)
      throw new Refusal('invalid_credentials')
    },

    async useLink(token, client, old) {
      await limits.countAuthentication(client.address)
      const user = await store.useLink(hashOfKey(token), clock.now())
      if (user === undefined) throw new Refusal('invalid_link')
      return await begin(user, client, true, old)
    },

    async signOut(session, client, everywhere) {
      try {
        await limits.countAuthentication(client.address)
      } catch (error) {
        // Whoever has a session can end it, whatever others did from the same address.
        if (session === undefined) throw error
      }
      if (session === undefined) throw new Refusal('not_signed_in')
      await (everywhere ? store.endSessions(session.user.id) : store.endSession(session.hash))
    },

    async setPassword(session, client, { current, password }) {
      await limits.countPasswordChange(client.address, session?.user.id)
      if (session === undefined) throw new Refusal('not_signed_in')
      checkNewPassword(password)
      const { user, fromLink, hash } = session
      if (!fromLink) {
        if (current === undefined) throw refusalSaying('invalid_input', 'The current password is missing.')
        if (!(await passwords.matches(current, user.password)))
          throw refusalSaying('invalid_credentials', 'The current password is not correct.')
      }
      const stored = await passwords.store(password)
      await store.setPassword(user.id, stored, hash)
      return { ...session, user: { ...user, password: stored }, fromLink: false }
    },

    async describe({ user, fromLink, expiresAtMs, hash }) {
      const account = await store.findAccount(user.accountId)
      // The account of a user cannot be removed, but the user and the session can.
      if (account === undefined) throw new Refusal('not_signed_in')
      return {
        id: sessionIdOf({ hash }),
        email: user.email,
        account,
        can_set_password: fromLink,
        has_password: user.password !== undefined,
        expires_at: new Date(expiresAtMs).toISOString(),
        models,
        base_url: baseUrl(),
      }
    },
  }
}
