/** Users and data of the console, on SQLite. */
import type { OpenDatabase, Row } from '../../../host/database.js'
import type { ConsoleStore, DaySpend, ListedRun, RunFilter, UserStore } from '../console-store.js'
import {
  accountSummaryOf,
  DAY_MS,
  daySpendOf,
  keyDetailsOfRow,
  listedEntryOf,
  listedRunOf,
  loginOfRow,
  lostAttemptOf,
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
  sqliteTexts,
  USER_COLUMNS,
  USERS,
  whereOf,
} from '../statements.js'

/** Only the needed columns, because libsql spends most of a read on columns. */
const RUN_COLUMNS = `${STORED_RUN_COLUMNS}, runs.sequence, key_id, prompt, aspect_ratio, price, failure,
      keys.name AS key_name`
const JOIN_KEY = 'LEFT JOIN keys ON keys.id = key_id'

/** Condition of a search. `lower` changes only ASCII letters. */
const IN_PROMPT = 'instr(lower(runs.prompt), lower(?)) > 0'

// Names the index, because the planner has no statistics.
const listRunsSql = (where: string, limit: string): string => `
    SELECT ${RUN_COLUMNS} FROM runs INDEXED BY runs_of_account ${JOIN_KEY}
    WHERE ${where} ORDER BY runs.sequence DESC LIMIT ${limit}`

/** Finds the newest run that a page does not scan. */
const floorOfRunsSql = (where: string, offset: string): string => `
    SELECT sequence FROM runs INDEXED BY runs_of_account WHERE ${where} ORDER BY sequence DESC LIMIT 1 OFFSET ${offset}`

const listEntriesSql = (where: string, limit: string): string => `
    SELECT ${ENTRY_COLUMNS}, keys.name AS key_name
    FROM credits JOIN accounts ON accounts.id = credits.account_id LEFT JOIN keys ON keys.id = credits.key_id
    WHERE ${where} ORDER BY credits.sequence DESC LIMIT ${limit}`

const SQL = {
  ...sqliteTexts(CONSOLE),

  findUserById: `SELECT ${USER_COLUMNS} FROM ${USERS} WHERE users.id = ?1`,

  setPassword: `UPDATE users SET password = ?2 WHERE id = ?1`,

  // Adds no link if the user was removed before.
  addLink: `INSERT INTO links (hash, user_id, expires_at) SELECT ?1, id, ?3 FROM users WHERE id = ?2`,

  useLink: `DELETE FROM links WHERE hash = ?1 AND expires_at > ?2 RETURNING user_id`,

  endLinks: `DELETE FROM links WHERE user_id = ?1`,

  endExpiredLinks: `DELETE FROM links WHERE expires_at <= ?1`,

  addSession: `
    INSERT INTO sessions (hash, user_id, from_link, address, user_agent, created_at, used_at, expires_at)
    SELECT ?1, id, ?3, ?4, ?5, ?6, ?6, ?7 FROM users WHERE id = ?2`,

  extendSession: `
    UPDATE sessions SET used_at = max(used_at, ?2), expires_at = max(expires_at, ?3)
    WHERE hash = ?1 AND expires_at > ?2 RETURNING user_id`,

  recordSeen: `UPDATE users SET last_seen_at = max(coalesce(last_seen_at, ?2), ?2) WHERE id = ?1`,

  endSessions: `DELETE FROM sessions WHERE user_id = ?1`,

  endOtherSessions: `DELETE FROM sessions WHERE user_id = ?1 AND hash <> ?2`,

  endExpiredSessions: `DELETE FROM sessions WHERE expires_at <= ?1`,

  keepSession: `UPDATE sessions SET from_link = 0 WHERE user_id = ?1 AND hash = ?2`,

  addLogin: `
    INSERT INTO logins (hash, user_id, challenge, name, expires_at)
    SELECT ?1, id, ?3, ?4, ?5 FROM users WHERE id = ?2`,

  useLogin: `DELETE FROM logins WHERE hash = ?1 AND expires_at > ?2 RETURNING user_id, challenge, name`,

  endLogins: `DELETE FROM logins WHERE user_id = ?1`,

  endExpiredLogins: `DELETE FROM logins WHERE expires_at <= ?1`,

  findRuns: `
    SELECT ${RUN_COLUMNS} FROM json_each(?1) AS wanted CROSS JOIN runs ON runs.id = wanted.value ${JOIN_KEY}
    WHERE runs.account_id = ?2`,

  outputsOfRuns: `
    SELECT outputs.* FROM json_each(?1) AS wanted CROSS JOIN outputs ON run_id = wanted.value ORDER BY run_id, position`,

  nextSpend: `
    SELECT created_at FROM credits WHERE account_id = ?1 AND created_at >= ?2 AND kind <> 'added'
    ORDER BY created_at LIMIT 1`,

  spendBetween: `
    SELECT ?2 AS at, -sum(amount) AS credits, sum(amount < 0) AS runs
    FROM credits WHERE account_id = ?1 AND created_at >= ?2 AND created_at < ?3 AND kind <> 'added'`,
} as const

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

export function createConsoleStore({ get, all }: Pick<OpenDatabase, 'get' | 'all'>): ConsoleStore {
  function runsOf(rows: readonly Row[]): readonly ListedRun[] {
    const succeeded = rows.filter(({ status }) => status === 'succeeded').map(({ id }) => String(id))
    const outputs = all(SQL.outputsOfRuns, JSON.stringify(succeeded))
    return rows.map((row) =>
      listedRunOf(
        row,
        runSummaryOf(
          row,
          outputs.filter(({ run_id }) => run_id === row.id),
        ),
      ),
    )
  }

  function floorOf(filter: RunFilter): number | undefined {
    const count = maxLookedAt(filter)
    if (count === undefined) return undefined
    const range = whereOf(rangeConditions(filter), '?')
    const row = get(floorOfRunsSql(range.sql, range.next), ...range.values, count)
    return row && Number(row.sequence)
  }

  return {
    async findAccount(id) {
      const row = get(SQL.findAccountById, id)
      return row && accountSummaryOf(row)
    },
    async listRuns(filter) {
      const { search, limit } = filter
      const floor = floorOf(filter)
      const prompt = search === undefined ? [] : [{ sql: IN_PROMPT, value: search }]
      const where = whereOf([...runConditions(filter, floor), ...prompt], '?')
      // Reads one more run to find out whether another page follows.
      const found = all(listRunsSql(where.sql, where.next), ...where.values, limit + 1)
      return foundRuns(runsOf(found), limit, floor)
    },
    findRuns: async (ids, accountId) => runsOf(all(SQL.findRuns, JSON.stringify(ids), accountId)),
    latestRun: async (accountId) => Number(get(SQL.latestRun, accountId)?.latest),
    listLostAttempts: async (runId) => all(SQL.listLostAttempts, runId).map(lostAttemptOf),
    listAccountKeys: async ({ accountId, before = Number.MAX_SAFE_INTEGER, limit, includesArchived }) => {
      const statement = includesArchived ? SQL.listAllAccountKeys : SQL.listAccountKeys
      return all(statement, accountId, before, limit).map(keyDetailsOfRow)
    },
    async findAccountKey(id, accountId) {
      const row = get(SQL.findAccountKey, id, accountId)
      return row && keyDetailsOfRow(row)
    },
    async listAccountEntries(filter) {
      const where = whereOf(entryConditions(filter), '?')
      return all(listEntriesSql(where.sql, where.next), ...where.values, filter.limit).map(listedEntryOf)
    },
    async spendPerDay(accountId, fromMs) {
      const days: DaySpend[] = []
      // Reads one range of the index per day. GROUP BY would sort all entries.
      for (let at = nextSpend(fromMs); at !== undefined; ) {
        const endMs = (Math.floor(at / DAY_MS) + 1) * DAY_MS
        const row = get(SQL.spendBetween, accountId, at, endMs)
        if (row !== undefined) days.push(daySpendOf(row))
        at = nextSpend(endMs)
      }
      return days

      function nextSpend(ms: number): number | undefined {
        const row = get(SQL.nextSpend, accountId, ms)
        return row && Number(row.created_at)
      }
    },
  }
}
