/** Sessions of people: a random token in their browser, of which only the hash is stored. */
import type { Clock } from '../../host/clock.js'
import type { SessionList } from '../../protocol/console.js'
import { printable, shortened } from '../../protocol/text.js'
import { Refusal } from '../rules/refusal.js'
import { hashOfKey, newSecret } from '../secrets.js'
import type { SessionRecord, UserRecord, UserStore } from '../store/user-store.js'

export const SESSION_MS = 7 * 24 * 3_600_000
/** Every use extends a session, but a write for each request would cost more than what it tells. */
const EXTEND_EVERY_MS = 60_000
const MAX_USER_AGENT_LENGTH = 300

/** Who asks. */
export interface Client {
  readonly address: string
  readonly userAgent: string | undefined
}

/** What the page may know of a session: a part of the hash, from which no token can be found. */
export const sessionIdOf = ({ hash }: Pick<SessionRecord, 'hash'>): string => hash.slice(0, 32)

export interface BegunSession {
  readonly token: string
  readonly record: Pick<SessionRecord, 'user' | 'fromLink' | 'expiresAtMs' | 'hash'>
}

export interface FoundSession {
  readonly record: SessionRecord
  /** It now ends later, and so must the cookie. */
  readonly isExtended: boolean
}

export interface Sessions {
  begin(user: UserRecord, client: Client, fromLink: boolean): Promise<BegunSession>
  /** Undefined for a token that is missing, unknown or expired. */
  find(token: string | undefined): Promise<FoundSession | undefined>
  list(current: SessionRecord): Promise<SessionList>
  /** Ends a session of this user; `id` may be anything. Throws `Refusal` (404). */
  end(userId: number, id: string): Promise<void>
}

export interface SessionsOptions {
  readonly store: Pick<
    UserStore,
    'addSession' | 'findSession' | 'extendSession' | 'listSessions' | 'endSessionById'
  >
  readonly clock: Pick<Clock, 'now'>
  onError(error: unknown): void
}

export function createSessions({ store, clock, onError }: SessionsOptions): Sessions {
  const extending = new Set<string>()

  /** Nobody waits for it: a database that cannot be written can still be read. */
  function extend(hash: string, usedAtMs: number, expiresAtMs: number): void {
    extending.add(hash)
    store
      .extendSession(hash, { usedAtMs, expiresAtMs })
      .catch(onError)
      .finally(() => extending.delete(hash))
  }

  return {
    async begin(user, { address, userAgent }, fromLink) {
      const token = newSecret()
      const nowMs = clock.now()
      const expiresAtMs = nowMs + SESSION_MS
      const hash = hashOfKey(token)
      await store.addSession({
        hash,
        userId: user.id,
        fromLink,
        address,
        userAgent: userAgent && shortened(printable(userAgent), MAX_USER_AGENT_LENGTH),
        nowMs,
        expiresAtMs,
      })
      return { token, record: { user, fromLink, expiresAtMs, hash } }
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
      return {
        sessions: records.map((each) => ({
          id: each.id,
          current: each.id === id,
          created_at: new Date(each.createdAtMs).toISOString(),
          last_used_at: new Date(each.usedAtMs).toISOString(),
          address: each.address ?? null,
          user_agent: each.userAgent ?? null,
        })),
      }
    },

    async end(userId, id) {
      const number = /^\d{1,15}$/.test(id) ? Number(id) : 0
      if (!(await store.endSessionById(userId, number))) throw new Refusal('not_found')
    },
  }
}
