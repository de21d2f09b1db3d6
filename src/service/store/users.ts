/**
 * Users of the console, with their sessions and sign-in links. Of their tokens, only the SHA-256 (hex) is stored. Expired ones
 * are not found. Removing a user also removes the user's sessions and links.
 */
import { Refusal } from '../rules/refusal.js'
import { recordOf } from './rows.js'
import { type Database, insert, type Queries, type Transaction } from './sql.js'

export interface UserRecord {
  readonly id: number
  /** Lowercase. */
  readonly email: string
  readonly accountId: number
  readonly account: string
  /** Whether the account is banned. */
  readonly banned: boolean
  /** Hashed password (rules/credentials.ts). Undefined until the user sets one. */
  readonly password: string | undefined
  readonly createdAtMs: number
}

/** A session or a sign-in link. */
interface NewToken {
  readonly hash: string
  readonly userId: number
  readonly nowMs: number
  readonly expiresAtMs: number
}

interface NewSession extends NewToken {
  /** Whether a sign-in link started the session. If true, the user can set a password without the current one. */
  readonly fromLink: boolean
  readonly address: string | undefined
  readonly userAgent: string | undefined
}

/** A session in a list. */
export interface ListedSession {
  readonly id: number
  readonly hash: string
  readonly userId: number
  readonly fromLink: boolean
  readonly expiresAtMs: number
  readonly address: string | undefined
  readonly userAgent: string | undefined
  readonly createdAtMs: number
  readonly usedAtMs: number
}

export interface SessionRecord extends ListedSession {
  readonly user: UserRecord
}

/** Maximum number of expired tokens that a new token removes, so that its transaction stays short. */
const MAX_EXPIRED = 500

const USER_COLUMNS =
  'users.id, users.email, users.account_id, users.password, users.created_at, accounts.name AS account, accounts.banned'
const USERS = 'users JOIN accounts ON accounts.id = users.account_id'

const SESSIONS = `
    SELECT id, hash, user_id, from_link, address, user_agent, created_at, used_at, expires_at
    FROM tokens WHERE kind = 'session' AND expires_at > :nowMs`

/** All tokens of the user but this session. */
const endTokens = (tx: Pick<Transaction, 'run'>, userId: number, kept = '') =>
  tx.run(`DELETE FROM tokens WHERE user_id = :userId AND NOT (kind = 'session' AND hash = :kept)`, {
    userId,
    kept,
  })

const findUserById = async (tx: Queries, id: number): Promise<UserRecord | undefined> => {
  const row = await tx.get(`SELECT ${USER_COLUMNS} FROM ${USERS} WHERE users.id = :id`, { id })
  return row && recordOf(row)
}

async function addToken(
  tx: Transaction,
  kind: 'session' | 'link',
  { hash, userId, nowMs, expiresAtMs, ...from }: NewToken & Partial<NewSession>,
): Promise<void> {
  await tx.run(
    `DELETE FROM tokens WHERE id IN (
      SELECT id FROM tokens WHERE expires_at <= :nowMs ORDER BY expires_at LIMIT ${MAX_EXPIRED} {lock_free})`,
    { nowMs },
  )
  // The user was removed before.
  if ((await findUserById(tx, userId)) === undefined) return
  const row = {
    user_id: userId,
    kind,
    hash,
    created_at: nowMs,
    used_at: nowMs,
    expires_at: expiresAtMs,
    from_link: from.fromLink ?? false,
    address: from.address,
    user_agent: from.userAgent,
  }
  await tx.run(...insert('tokens', row, 'ON CONFLICT (kind, hash) DO NOTHING'))
}

export function createUserStore({ transaction, repeatable, get, all }: Database) {
  return {
    /** Returns the id, or undefined if the email is taken. Throws if the account does not exist. */
    addUser: (user: {
      readonly email: string
      readonly accountId: number
      readonly nowMs: number
    }): Promise<number | undefined> =>
      transaction(async (tx) => {
        const row = {
          email: user.email,
          account_id: user.accountId,
          created_at: user.nowMs,
        }
        const after = 'ON CONFLICT (email) DO NOTHING RETURNING id'
        return (await tx.get(...insert('users', row, after)))?.id as number | undefined
      }),
    async findUser(email: string): Promise<UserRecord | undefined> {
      const find = `SELECT ${USER_COLUMNS} FROM ${USERS} WHERE users.email = :email`
      const row = await get(find, { email })
      return row && recordOf(row)
    },
    /** Oldest first. All users, or those of an account. */
    async listUsers(accountId?: number) {
      const where = accountId === undefined ? '' : 'WHERE users.account_id = :accountId'
      const rows = await all(`SELECT ${USER_COLUMNS} FROM ${USERS} ${where} ORDER BY users.id`, { accountId })
      return rows.map((row) => recordOf<UserRecord>(row))
    },
    /** Returns false if the user does not exist. */
    removeUser: (id: number): Promise<boolean> =>
      transaction(async (tx) => {
        await endTokens(tx, id)
        return (await tx.run('DELETE FROM users WHERE id = :id', { id })) > 0
      }),
    /**
     * Sets the password, and ends all other sessions and links of the user. The session `kept` then counts as started
     * with a password. Throws `Refusal` (401) if that session has ended.
     */
    setPassword: (userId: number, password: string, kept: string): Promise<void> =>
      repeatable(async (tx) => {
        await endTokens(tx, userId, kept)
        const keep = `UPDATE tokens SET from_link = false WHERE user_id = :userId AND kind = 'session' AND hash = :kept`
        if ((await tx.run(keep, { userId, kept })) === 0) throw new Refusal('not_signed_in')
        await tx.run('UPDATE users SET password = :password WHERE id = :userId', { userId, password })
      }),
  }
}

export function createSessionStore(database: Database) {
  const { transaction, repeatable, get, all, run } = database
  return {
    /** Adds a link, and removes expired links of all users. */
    addLink: (link: NewToken): Promise<void> => repeatable((tx) => addToken(tx, 'link', link)),
    /**
     * Removes the link and returns its user. Returns undefined if the link does not exist, or if a concurrent call has
     * used it.
     */
    useLink: (hash: string, nowMs: number): Promise<UserRecord | undefined> =>
      // Only one of several callers gets the row.
      transaction(async (tx) => {
        const use = `DELETE FROM tokens WHERE kind = 'link' AND hash = :hash AND expires_at > :nowMs RETURNING user_id`
        const link = await tx.get(use, { hash, nowMs })
        return link && (await findUserById(tx, Number(link.user_id)))
      }),

    /** Adds a session, and removes expired sessions of all users. */
    addSession: (session: NewSession): Promise<void> => repeatable((tx) => addToken(tx, 'session', session)),
    async findSession(hash: string, nowMs: number): Promise<SessionRecord | undefined> {
      const row = await get(`${SESSIONS} AND hash = :hash`, { hash, nowMs })
      // Undefined if the user was removed in between.
      const user = row && (await findUserById(database, Number(row.user_id)))
      return user && { ...recordOf<ListedSession>(row), user }
    },
    extendSession: async (
      hash: string,
      { usedAtMs, expiresAtMs }: { readonly usedAtMs: number; readonly expiresAtMs: number },
    ): Promise<void> =>
      void (await run(
        `UPDATE tokens SET used_at = CASE WHEN used_at < :usedAtMs THEN :usedAtMs ELSE used_at END,
           expires_at = CASE WHEN expires_at < :expiresAtMs THEN :expiresAtMs ELSE expires_at END
         WHERE hash = :hash AND kind = 'session' AND expires_at > :usedAtMs`,
        { hash, usedAtMs, expiresAtMs },
      )),
    endSession: async (hash: string): Promise<void> =>
      void (await run(`DELETE FROM tokens WHERE hash = :hash AND kind = 'session'`, { hash })),
    /** Ends all sessions and links of the user. */
    endSessions: async (userId: number): Promise<void> => void (await endTokens(database, userId)),
    /** Most recently used first, at most 100. */
    async listSessions(userId: number, nowMs: number): Promise<readonly ListedSession[]> {
      const list = `${SESSIONS} AND user_id = :userId ORDER BY used_at DESC, id DESC LIMIT 100`
      return (await all(list, { userId, nowMs })).map((row) => recordOf(row))
    },
  }
}
