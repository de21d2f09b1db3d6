/** Users and data of the console, on PostgreSQL. Each change can be repeated if its response was lost. */
import { randomUUID } from 'node:crypto'
import type { ConsoleStore, RunFilter, UserStore } from '../console-store.js'
import {
  accountSummaryOf,
  DAY_MS,
  daySpendOf,
  keyDetailsOfRow,
  listedEntryOf,
  listedRunOf,
  loginOfRow,
  lostAttemptOf,
  type Row,
  runSummaryOf,
  STORED_RUN_COLUMNS,
  sessionOfRow,
  userDetailsOfRow,
  userOfRow,
} from '../rows.js'
import {
  CONSOLE,
  ENTRY_COLUMNS,
  entryConditions,
  foundRuns,
  maxLookedAt,
  rangeConditions,
  runConditions,
  USER_COLUMNS,
  whereOf,
} from '../statements.js'
import type { PostgresDatabase } from './database.js'
import { hasNul, type PgValue, type PreparedStatement, statementsOf } from './driver.js'

/**
 * Lets only one of several callers use the row: the others wait for the row, and then see who used it. $3: id of the
 * call.
 */
const USABLE = 'hash = $1 AND expires_at > $2 AND coalesce(used_by, $3) = $3'

const RUNS = `
    SELECT ${STORED_RUN_COLUMNS}, runs.sequence, runs.key_id, prompt, aspect_ratio, failure, price, keys.name AS key_name,
      CASE WHEN status = 'succeeded' THEN (
        SELECT json_agg(outputs ORDER BY position) FROM outputs WHERE run_id = runs.id
      ) END AS outputs
    FROM runs LEFT JOIN keys ON keys.id = runs.key_id`

/** SQL for the midnight (UTC) that ends the day of `time`. */
const nextDay = (time: string): string => `(${time} / ${DAY_MS} + 1) * ${DAY_MS}`

/** Condition of a search. With the collation "C", `lower` changes only ASCII letters. */
const IN_PROMPT = `position(lower(? COLLATE "C") IN lower(runs.prompt COLLATE "C")) > 0`

/** A statement that is planned for each call, because its filters and values differ. */
const unnamed = (text: string): PreparedStatement => ({ name: '', text })

const listRunsSql = (where: string, limit: string): PreparedStatement =>
  unnamed(`${RUNS} WHERE ${where} ORDER BY runs.sequence DESC LIMIT ${limit}`)

/** Finds the newest run that a page does not scan. */
const floorOfRunsSql = (where: string, offset: string): PreparedStatement =>
  unnamed(`SELECT sequence FROM runs WHERE ${where} ORDER BY sequence DESC LIMIT 1 OFFSET ${offset}`)

const listEntriesSql = (where: string, limit: string): PreparedStatement =>
  unnamed(`
    SELECT ${ENTRY_COLUMNS}, keys.name AS key_name
    FROM credits JOIN accounts ON accounts.id = credits.account_id LEFT JOIN keys ON keys.id = credits.key_id
    WHERE ${where} ORDER BY credits.sequence DESC LIMIT ${limit}`)

export const CONSOLE_SQL = statementsOf({
  ...CONSOLE,

  setPassword: `
    WITH ended AS (DELETE FROM sessions WHERE user_id = $1 AND hash <> $3),
    kept AS (UPDATE sessions SET from_link = false WHERE user_id = $1 AND hash = $3),
    ended_links AS (DELETE FROM links WHERE user_id = $1),
    ended_logins AS (DELETE FROM logins WHERE user_id = $1)
    UPDATE users SET password = $2 WHERE id = $1`,

  // Adds no link if the user was removed before.
  addLink: `
    WITH expired AS (DELETE FROM links WHERE expires_at <= $3)
    INSERT INTO links (hash, user_id, expires_at) SELECT $1, id, $4::bigint FROM users WHERE id = $2
    ON CONFLICT (hash) DO NOTHING`,

  useLink: `
    WITH used AS (UPDATE links SET used_by = $3 WHERE ${USABLE} RETURNING user_id)
    SELECT ${USER_COLUMNS} FROM used JOIN users ON users.id = used.user_id JOIN accounts ON accounts.id = users.account_id`,

  addSession: `
    WITH expired AS (DELETE FROM sessions WHERE expires_at <= $6::bigint),
    seen AS (UPDATE users SET last_seen_at = greatest(last_seen_at, $6::bigint) WHERE id = $2 RETURNING id)
    INSERT INTO sessions (hash, user_id, from_link, address, user_agent, created_at, used_at, expires_at)
    SELECT $1, id, $3::boolean, $4, $5, $6::bigint, $6::bigint, $7::bigint FROM seen
    ON CONFLICT (hash) DO NOTHING`,

  extendSession: `
    WITH extended AS (
      UPDATE sessions SET used_at = greatest(used_at, $2::bigint), expires_at = greatest(expires_at, $3::bigint)
      WHERE hash = $1 AND expires_at > $2::bigint RETURNING user_id
    )
    UPDATE users SET last_seen_at = greatest(last_seen_at, $2::bigint) FROM extended WHERE users.id = extended.user_id`,

  endSessions: `
    WITH ended_links AS (DELETE FROM links WHERE user_id = $1),
    ended_logins AS (DELETE FROM logins WHERE user_id = $1)
    DELETE FROM sessions WHERE user_id = $1`,

  addLogin: `
    WITH expired AS (DELETE FROM logins WHERE expires_at <= $5)
    INSERT INTO logins (hash, user_id, challenge, name, expires_at) SELECT $1, id, $3, $4, $6::bigint FROM users WHERE id = $2
    ON CONFLICT (hash) DO NOTHING`,

  useLogin: `
    WITH used AS (UPDATE logins SET used_by = $3 WHERE ${USABLE} RETURNING user_id, challenge, name)
    SELECT users.id AS user_id, users.account_id, accounts.banned, used.challenge, used.name
    FROM used JOIN users ON users.id = used.user_id JOIN accounts ON accounts.id = users.account_id`,

  // For `+ 0`, see `findRun` in run-statements.ts.
  findRuns: `${RUNS} WHERE runs.id = ANY ($1::text[]) AND runs.account_id + 0 = $2`,

  // Reads one range of the index per day. GROUP BY would take twice as long.
  spendPerDay: `
    WITH RECURSIVE days AS (
      (
        SELECT created_at AS at FROM credits
        WHERE account_id = $1 AND kind <> 'added' AND created_at >= $2 ORDER BY created_at LIMIT 1
      )
      UNION ALL
      SELECT later.* FROM days CROSS JOIN LATERAL (
        SELECT created_at FROM credits
        WHERE account_id = $1 AND kind <> 'added' AND created_at >= ${nextDay('days.at')} ORDER BY created_at LIMIT 1
      ) AS later
    )
    SELECT days.at, spent.credits, spent.runs FROM days CROSS JOIN LATERAL (
      SELECT -sum(amount) AS credits, count(*) FILTER (WHERE amount < 0) AS runs FROM credits
      WHERE account_id = $1 AND kind <> 'added' AND created_at >= days.at AND created_at < ${nextDay('days.at')}
    ) AS spent
    ORDER BY days.at`,
})

export function createUserStore({ transaction, get, all, run }: PostgresDatabase): UserStore {
  /** Returns whether a row was removed, even if the response to the commit was lost. */
  function remove(statement: PreparedStatement, ...values: readonly PgValue[]): Promise<boolean> {
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
          const known = tx.mayHaveCommitted ? await tx.get(CONSOLE_SQL.findUser, lower) : undefined
          if (known !== undefined && known.user_id === added) return added
          const row = await tx.get(CONSOLE_SQL.addUser, lower, accountId, nowMs)
          added = row && Number(row.id)
          return added
        },
        { repeatable: true },
      )
    },
    async findUser(email) {
      if (hasNul(email)) return undefined
      const row = await get(CONSOLE_SQL.findUser, email.toLowerCase())
      return row && userOfRow(row)
    },
    listUsers: async (nowMs) => (await all(CONSOLE_SQL.listUsers, nowMs)).map(userDetailsOfRow),
    removeUser: async (email) =>
      !hasNul(email) && (await remove(CONSOLE_SQL.removeUser, email.toLowerCase())),
    setPassword: async (userId, password, keptSession) =>
      void (await run(CONSOLE_SQL.setPassword, userId, password, keptSession)),

    addLink: async ({ hash, userId, nowMs, expiresAtMs }) =>
      void (await run(CONSOLE_SQL.addLink, hash, userId, nowMs, expiresAtMs)),
    async useLink(hash, nowMs) {
      const row = await get(CONSOLE_SQL.useLink, hash, nowMs, randomUUID())
      return row && userOfRow(row)
    },

    addSession: async ({ hash, userId, fromLink, address, userAgent, nowMs, expiresAtMs }) =>
      void (await run(
        CONSOLE_SQL.addSession,
        hash,
        userId,
        fromLink,
        address ?? null,
        userAgent ?? null,
        nowMs,
        expiresAtMs,
      )),
    async findSession(hash, nowMs) {
      const row = await get(CONSOLE_SQL.findSession, hash, nowMs)
      return row && sessionOfRow(row)
    },
    extendSession: async (hash, { usedAtMs, expiresAtMs }) =>
      void (await run(CONSOLE_SQL.extendSession, hash, usedAtMs, expiresAtMs)),
    endSession: async (hash) => void (await run(CONSOLE_SQL.endSession, hash)),
    endSessionById: (userId, id) => remove(CONSOLE_SQL.endSessionById, userId, id),
    endSessions: async (userId) => void (await run(CONSOLE_SQL.endSessions, userId)),
    listSessions: async (userId, nowMs) =>
      (await all(CONSOLE_SQL.listSessions, userId, nowMs)).map(sessionOfRow),

    addLogin: async ({ hash, userId, challenge, name, nowMs, expiresAtMs }) =>
      void (await run(CONSOLE_SQL.addLogin, hash, userId, challenge, name, nowMs, expiresAtMs)),
    async useLogin(hash, nowMs) {
      const row = await get(CONSOLE_SQL.useLogin, hash, nowMs, randomUUID())
      return row && loginOfRow(row)
    },
  }
}

const toListedRun = (row: Row) => listedRunOf(row, runSummaryOf(row))

export function createConsoleStore({ get, all }: Pick<PostgresDatabase, 'get' | 'all'>): ConsoleStore {
  async function floorOf(filter: RunFilter): Promise<number | undefined> {
    const count = maxLookedAt(filter)
    if (count === undefined) return undefined
    const range = whereOf(rangeConditions(filter), '$')
    const row = await get(floorOfRunsSql(range.sql, range.next), ...range.values, count)
    return row && Number(row.sequence)
  }

  return {
    async findAccount(id) {
      const row = await get(CONSOLE_SQL.findAccountById, id)
      return row && accountSummaryOf(row)
    },
    async listRuns(filter) {
      const { model = '', search, limit } = filter
      if (hasNul(model, search ?? '')) return { runs: [], next: undefined }
      const floor = await floorOf(filter)
      const prompt = search === undefined ? [] : [{ sql: IN_PROMPT, value: search }]
      const where = whereOf([...runConditions(filter, floor), ...prompt], '$')
      // Reads one more run to find out whether another page follows.
      const found = await all(listRunsSql(where.sql, where.next), ...where.values, limit + 1)
      return foundRuns(found.map(toListedRun), limit, floor)
    },
    findRuns: async (ids, accountId) => {
      const known = ids.filter((id) => !hasNul(id))
      return (await all(CONSOLE_SQL.findRuns, known, accountId)).map(toListedRun)
    },
    latestRun: async (accountId) => Number((await get(CONSOLE_SQL.latestRun, accountId))?.latest),
    listLostAttempts: async (runId) => (await all(CONSOLE_SQL.listLostAttempts, runId)).map(lostAttemptOf),
    async listAccountKeys({ accountId, before = Number.MAX_SAFE_INTEGER, limit, includesArchived }) {
      const statement = includesArchived ? CONSOLE_SQL.listAllAccountKeys : CONSOLE_SQL.listAccountKeys
      return (await all(statement, accountId, before, limit)).map(keyDetailsOfRow)
    },
    async findAccountKey(id, accountId) {
      const row = await get(CONSOLE_SQL.findAccountKey, id, accountId)
      return row && keyDetailsOfRow(row)
    },
    async listAccountEntries(filter) {
      const where = whereOf(entryConditions(filter), '$')
      return (await all(listEntriesSql(where.sql, where.next), ...where.values, filter.limit)).map(
        listedEntryOf,
      )
    },
    spendPerDay: async (accountId, fromMs) =>
      (await all(CONSOLE_SQL.spendPerDay, accountId, fromMs)).map(daySpendOf),
  }
}
