/** The console's users on SQLite. */
import type { OpenDatabase } from '../../../host/database.js'
import { loginOfRow, sessionOfRow, userDetailsOfRow, userOfRow } from '../user-rows.js'
import type { UserStore } from '../user-store.js'
import { USER_SQL as SQL } from './user-statements.js'

export function createUserStore({ run, get, all, transaction }: OpenDatabase): UserStore {
  return {
    async addUser({ email, accountId, nowMs }) {
      const row = get(SQL.addUser, email.toLowerCase(), accountId, nowMs)
      return row && Number(row.id)
    },
    async findUser(email) {
      const row = get(SQL.findUser, email.toLowerCase())
      return row && userOfRow(row)
    },
    listUsers: async (nowMs) => all(SQL.listUsers, nowMs).map(userDetailsOfRow),
    removeUser: async (email) => run(SQL.removeUser, email.toLowerCase()).changes > 0,
    setPassword: async (userId, password, keptSession) =>
      transaction(() => {
        run(SQL.setPassword, userId, password)
        run(SQL.endOtherSessions, userId, keptSession)
        run(SQL.keepSession, userId, keptSession)
        run(SQL.endLinks, userId)
        run(SQL.endLogins, userId)
      }),

    addLink: async ({ hash, userId, nowMs, expiresAtMs }) =>
      transaction(() => {
        run(SQL.endExpiredLinks, nowMs)
        run(SQL.addLink, hash, userId, expiresAtMs)
      }),
    useLink: async (hash, nowMs) =>
      transaction(() => {
        const link = get(SQL.useLink, hash, nowMs)
        const row = link && get(SQL.findUserById, Number(link.user_id))
        return row && userOfRow(row)
      }),

    addSession: async ({ hash, userId, fromLink, address, userAgent, nowMs, expiresAtMs }) =>
      transaction(() => {
        run(SQL.endExpiredSessions, nowMs)
        const from = [fromLink ? 1 : 0, address ?? null, userAgent ?? null]
        run(SQL.addSession, hash, userId, ...from, nowMs, expiresAtMs)
        run(SQL.recordSeen, userId, nowMs)
      }),
    async findSession(hash, nowMs) {
      const row = get(SQL.findSession, hash, nowMs)
      return row && sessionOfRow(row)
    },
    extendSession: async (hash, { usedAtMs, expiresAtMs }) =>
      transaction(() => {
        const row = get(SQL.extendSession, hash, usedAtMs, expiresAtMs)
        if (row !== undefined) run(SQL.recordSeen, Number(row.user_id), usedAtMs)
      }),
    endSession: async (hash) => void run(SQL.endSession, hash),
    endSessionById: async (userId, id) => run(SQL.endSessionById, userId, id).changes > 0,
    endSessions: async (userId) =>
      transaction(() => {
        run(SQL.endSessions, userId)
        run(SQL.endLinks, userId)
        run(SQL.endLogins, userId)
      }),
    listSessions: async (userId, nowMs) => all(SQL.listSessions, userId, nowMs).map(sessionOfRow),

    addLogin: async ({ hash, userId, challenge, name, nowMs, expiresAtMs }) =>
      transaction(() => {
        run(SQL.endExpiredLogins, nowMs)
        run(SQL.addLogin, hash, userId, challenge, name, expiresAtMs)
      }),
    useLogin: async (hash, nowMs) =>
      transaction(() => {
        const login = get(SQL.useLogin, hash, nowMs)
        const user = login && get(SQL.findUserById, Number(login.user_id))
        return user && loginOfRow({ ...user, ...login })
      }),
  }
}
