/** Users of the console, with their sessions and sign-in links. */

import { Refusal } from '../rules/refusal.js'
import { MAX_ACCOUNT_USERS, type NewSession, type NewToken, type UserStore } from './console-store.js'
import { sessionOfRow, userDetailsOfRow, userOfRow } from './rows.js'
import {
  checkSession,
  type Database,
  type Dialect,
  hasNul,
  repeatable,
  type SqlValue,
  type Transaction,
} from './sql.js'

/** Columns of a user and its account, with names that differ from the columns of the joined table. */
const USER_COLUMNS = `users.id AS user_id, users.email, users.account_id, users.password,
      users.created_at AS user_created_at, accounts.name AS account, accounts.banned`

const USERS = 'users JOIN accounts ON accounts.id = users.account_id'

const SESSIONS = `
    SELECT tokens.id, tokens.hash, tokens.from_link, tokens.address, tokens.user_agent, tokens.created_at,
      tokens.used_at, tokens.expires_at, ${USER_COLUMNS}
    FROM tokens JOIN users ON users.id = tokens.user_id JOIN accounts ON accounts.id = users.account_id`

/** Maximum number of expired tokens that a new token removes, so that its transaction stays short. */
const MAX_EXPIRED = 500

const sqlOf = ({ lockFree }: Dialect) => ({
  addUser: `
    INSERT INTO users (email, account_id, created_at) VALUES ($1, $2, $3)
    ON CONFLICT (email) DO NOTHING RETURNING id`,

  findUser: `SELECT ${USER_COLUMNS} FROM ${USERS} WHERE users.email = $1`,

  findUserById: `SELECT ${USER_COLUMNS} FROM ${USERS} WHERE users.id = $1`,

  listUsers: (isOfAccount: boolean) => `
    SELECT ${USER_COLUMNS}, users.last_seen_at, (
      SELECT count(*) FROM tokens WHERE user_id = users.id AND kind = 'session' AND expires_at > $1
    ) AS sessions
    FROM ${USERS} ${isOfAccount ? 'WHERE users.account_id = $2' : ''} ORDER BY users.id
    ${isOfAccount ? `LIMIT ${MAX_ACCOUNT_USERS}` : ''}`,

  removeUser: `DELETE FROM users WHERE id = $1`,

  setPassword: `UPDATE users SET password = $2 WHERE id = $1`,

  recordSeen: `UPDATE users SET last_seen_at = $2 WHERE id = $1 AND coalesce(last_seen_at < $2, true)`,

  addToken: `
    INSERT INTO tokens (user_id, kind, hash, created_at, used_at, expires_at, from_link, address, user_agent)
    VALUES ($1, $2, $3, $4, $4, $5, $6, $7, $8)
    ON CONFLICT (kind, hash) DO NOTHING`,

  useLink: `DELETE FROM tokens WHERE kind = 'link' AND hash = $1 AND expires_at > $2 RETURNING user_id`,

  endExpired: `
    DELETE FROM tokens WHERE id IN (
      SELECT id FROM tokens WHERE expires_at <= $1 ORDER BY expires_at LIMIT ${MAX_EXPIRED}${lockFree}
    )`,

  // All tokens of the user but this session.
  endTokens: `DELETE FROM tokens WHERE user_id = $1 AND NOT (kind = 'session' AND hash = $2)`,

  keepSession: `UPDATE tokens SET from_link = false WHERE user_id = $1 AND kind = 'session' AND hash = $2`,

  findSession: `${SESSIONS} WHERE tokens.hash = $1 AND tokens.kind = 'session' AND tokens.expires_at > $2`,

  extendSession: `
    UPDATE tokens SET used_at = CASE WHEN used_at < $2 THEN $2 ELSE used_at END,
      expires_at = CASE WHEN expires_at < $3 THEN $3 ELSE expires_at END
    WHERE hash = $1 AND kind = 'session' AND expires_at > $2 RETURNING user_id`,

  endSession: `DELETE FROM tokens WHERE hash = $1 AND kind = 'session'`,

  endSessionById: `DELETE FROM tokens WHERE user_id = $1 AND id = $2 AND kind = 'session'`,

  listSessions: `
    ${SESSIONS} WHERE tokens.user_id = $1 AND tokens.kind = 'session' AND tokens.expires_at > $2
    ORDER BY tokens.used_at DESC, tokens.id DESC LIMIT 100`,
})

export function createUserStore(database: Database): UserStore {
  const { transaction, get, all, run, dialect } = database
  const SQL = sqlOf(dialect)
  const changed = async (sql: string, ...values: readonly SqlValue[]) => (await run(sql, ...values)) > 0

  async function addToken(
    tx: Transaction,
    kind: 'session' | 'link',
    { hash, userId, nowMs, expiresAtMs, ...from }: NewToken & Partial<NewSession>,
  ): Promise<void> {
    const { fromLink = false, address = null, userAgent = null } = from
    await tx.run(SQL.endExpired, nowMs)
    // The user was removed before.
    if ((await tx.get(SQL.findUserById, userId)) === undefined) return
    await tx.run(SQL.addToken, userId, kind, hash, nowMs, expiresAtMs, fromLink, address, userAgent)
  }

  return {
    addUser: ({ email, accountId, nowMs, by }) =>
      transaction(async (tx) => {
        if (by !== undefined) await checkSession(tx, dialect, by)
        const row = await tx.get(SQL.addUser, email.toLowerCase(), accountId, nowMs)
        return row && Number(row.id)
      }),
    async findUser(email) {
      const row = hasNul(email) ? undefined : await get(SQL.findUser, email.toLowerCase())
      return row && userOfRow(row)
    },
    async listUsers(nowMs, accountId) {
      const values = accountId === undefined ? [nowMs] : [nowMs, accountId]
      return (await all(SQL.listUsers(accountId !== undefined), ...values)).map(userDetailsOfRow)
    },
    removeUser: (id, by) =>
      transaction(async (tx) => {
        const user = await tx.get(SQL.findUserById, id)
        if (user === undefined) return false
        if (by !== undefined) {
          const { userId, accountId } = await checkSession(tx, dialect, by)
          if (id === userId || Number(user.account_id) !== accountId) return false
        }
        // Locks sessions before the user, in the same order as `extendSession`, to avoid a deadlock.
        await tx.run(SQL.endTokens, id, '')
        return (await tx.run(SQL.removeUser, id)) > 0
      }),
    setPassword: (userId, password, keptSession) =>
      repeatable(database, async (tx) => {
        // Locks sessions before the user, in the same order as `extendSession`, to avoid a deadlock.
        await tx.run(SQL.endTokens, userId, keptSession)
        if ((await tx.run(SQL.keepSession, userId, keptSession)) === 0) throw new Refusal('not_signed_in')
        await tx.run(SQL.setPassword, userId, password)
      }),

    addLink: (link, by) =>
      repeatable(database, async (tx) => {
        if (by !== undefined) await checkSession(tx, dialect, by)
        await addToken(tx, 'link', link)
      }),
    useLink: (hash, nowMs) =>
      // Only one of several callers gets the row.
      transaction(async (tx) => {
        const link = await tx.get(SQL.useLink, hash, nowMs)
        const user = link && (await tx.get(SQL.findUserById, Number(link.user_id)))
        return user && userOfRow(user)
      }),

    addSession: (session) =>
      repeatable(database, async (tx) => {
        await addToken(tx, 'session', session)
        await tx.run(SQL.recordSeen, session.userId, session.nowMs)
      }),
    async findSession(hash, nowMs) {
      const row = await get(SQL.findSession, hash, nowMs)
      return row && sessionOfRow(row)
    },
    extendSession: (hash, { usedAtMs, expiresAtMs }) =>
      repeatable(database, async (tx) => {
        const row = await tx.get(SQL.extendSession, hash, usedAtMs, expiresAtMs)
        if (row !== undefined) await tx.run(SQL.recordSeen, Number(row.user_id), usedAtMs)
      }),
    endSession: async (hash) => void (await run(SQL.endSession, hash)),
    endSessionById: (userId, id) => changed(SQL.endSessionById, userId, id),
    endSessions: async (userId) => void (await run(SQL.endTokens, userId, '')),
    listSessions: async (userId, nowMs) => (await all(SQL.listSessions, userId, nowMs)).map(sessionOfRow),
  }
}
