/** The console's users on PostgreSQL. */
import { randomUUID } from 'node:crypto'
import { loginOfRow, sessionOfRow, userDetailsOfRow, userOfRow } from '../user-rows.js'
import type { UserStore } from '../user-store.js'
import type { PostgresDatabase } from './database.js'
import { hasNul, type Statement, type Value } from './driver.js'
import { USER_SQL as SQL } from './user-statements.js'

export function createUserStore({ transaction, get, all, run }: PostgresDatabase): UserStore {
  /** Whether a row was removed, also when the answer to the commit was lost. */
  function remove(statement: Statement, ...values: readonly Value[]): Promise<boolean> {
    let isRemoved = false
    return transaction(
      async (tx) => {
        if ((await tx.run(statement, ...values)) > 0) isRemoved = true
        return isRemoved
      },
      { repeatable: true },
    )
  }

  return {
    addUser({ email, accountId, nowMs }) {
      const lower = email.toLowerCase()
      let added: number | undefined
      return transaction(
        async (tx) => {
          const known = tx.mayBeDone ? await tx.get(SQL.findUser, lower) : undefined
          if (known !== undefined && known.user_id === added) return added
          const row = await tx.get(SQL.addUser, lower, accountId, nowMs)
          added = row && Number(row.id)
          return added
        },
        { repeatable: true },
      )
    },
    async findUser(email) {
      if (hasNul(email)) return undefined
      const row = await get(SQL.findUser, email.toLowerCase())
      return row && userOfRow(row)
    },
    listUsers: async (nowMs) => (await all(SQL.listUsers, nowMs)).map(userDetailsOfRow),
    removeUser: async (email) => !hasNul(email) && (await remove(SQL.removeUser, email.toLowerCase())),
    setPassword: async (userId, password, keptSession) =>
      void (await run(SQL.setPassword, userId, password, keptSession)),

    addLink: async ({ hash, userId, nowMs, expiresAtMs }) =>
      void (await run(SQL.addLink, hash, userId, nowMs, expiresAtMs)),
    async useLink(hash, nowMs) {
      const row = await get(SQL.useLink, hash, nowMs, randomUUID())
      return row && userOfRow(row)
    },

    addSession: async ({ hash, userId, fromLink, address, userAgent, nowMs, expiresAtMs }) =>
      void (await run(
        SQL.addSession,
        hash,
        userId,
        fromLink,
        address ?? null,
        userAgent ?? null,
        nowMs,
        expiresAtMs,
      )),
    async findSession(hash, nowMs) {
      const row = await get(SQL.findSession, hash, nowMs)
      return row && sessionOfRow(row)
    },
    extendSession: async (hash, { usedAtMs, expiresAtMs }) =>
      void (await run(SQL.extendSession, hash, usedAtMs, expiresAtMs)),
    endSession: async (hash) => void (await run(SQL.endSession, hash)),
    endSessionById: (userId, id) => remove(SQL.endSessionById, userId, id),
    endSessions: async (userId) => void (await run(SQL.endSessions, userId)),
    listSessions: async (userId, nowMs) => (await all(SQL.listSessions, userId, nowMs)).map(sessionOfRow),

    addLogin: async ({ hash, userId, challenge, name, nowMs, expiresAtMs }) =>
      void (await run(SQL.addLogin, hash, userId, challenge, name, nowMs, expiresAtMs)),
    async useLogin(hash, nowMs) {
      const row = await get(SQL.useLogin, hash, nowMs, randomUUID())
      return row && loginOfRow(row)
    },
  }
}
