/** The store's statements and transactions on SQLite. */
import type { Clock } from '../../../host/clock.js'
import type { OpenDatabase, SqlValue as SqliteValue } from '../../../host/database.js'
import { retryErrors } from '../../../host/retry.js'
import { isBusy } from '../../../host/system-error.js'
import { createRetryWindow } from '../retry-window.js'
import { scriptsOf } from '../schema.js'
import type { Database, Dialect, Queries, SqlValue } from '../sql.js'

const REFUSED = "'the ledger of credits is only ever added to'"

/** Expression for the id of a database. */
export const SQLITE_RANDOM_ID = 'lower(hex(randomblob(16)))'

/** `INTEGER PRIMARY KEY AUTOINCREMENT`: no number is given again, also that of a removed row. */
export const SQLITE_SCRIPTS = scriptsOf({
  sequence: 'INTEGER PRIMARY KEY AUTOINCREMENT',
  integer: 'INTEGER',
  boolean: 'INTEGER',
  randomId: SQLITE_RANDOM_ID,
  options: ' STRICT',
  changing: ' STRICT',
  more: `
CREATE TRIGGER credits_stay BEFORE UPDATE ON credits BEGIN SELECT RAISE(ABORT, ${REFUSED}); END;
CREATE TRIGGER credits_remain BEFORE DELETE ON credits BEGIN SELECT RAISE(ABORT, ${REFUSED}); END;
`,
})

/** Stands for the time, which this process binds: it and the file are on one machine. */
const NOW = '$now'

const DIALECT: Dialect = {
  now: NOW,
  lock: () => '',
  lockFree: '',
  lockShared: '',
  inList: (parameter) => `IN (SELECT value FROM json_each(${parameter}))`,
  list: (parameter, alias) => `json_each(${parameter}) AS ${alias}`,
  index: (name) => ` INDEXED BY ${name}`,
  contains: (text, part) => `instr(lower(${text}), lower(${part})) > 0`,
}

/**
 * The last call of this thread. Calls run one after the other, also those of several connections: a statement must not
 * become a part of the transaction of another call, and waiting for a lock that this thread holds would never end.
 */
let last: Promise<unknown> = Promise.resolve()

export interface SqliteDatabase extends Database {
  /** Called when the service closes: shortens the waits for a lock of another process. */
  stopWaiting(): void
  close(): Promise<void>
}

/** How long one attempt may keep the event loop. Between attempts, other calls of this process go on. */
const BUSY_TIMEOUT_MS = 25

export function createSqliteDatabase(open: OpenDatabase, wall: Pick<Clock, 'now'>): SqliteDatabase {
  open.get(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
  const { clock, pauseMs, stop } = createRetryWindow()
  const inTurn = <Result>(work: () => Promise<Result>): Promise<Result> => {
    const startedMs = clock.monotonic()
    const attempt = () => {
      const result = last.then(work)
      last = result.catch(() => {})
      return result
    }
    return retryErrors(attempt, {
      pauseMs: (error, number) => (isBusy(error) ? pauseMs(startedMs, number) : undefined),
      clock,
    })
  }

  const queries: Queries = {
    all: async (sql, ...values) => open.all(...statementOf(sql, values, wall)),
    get: async (sql, ...values) => open.get(...statementOf(sql, values, wall)),
    run: async (sql, ...values) => open.run(...statementOf(sql, values, wall)).changes,
  }
  return {
    dialect: DIALECT,
    all: (sql, ...values) => inTurn(() => queries.all(sql, ...values)),
    get: (sql, ...values) => inTurn(() => queries.get(sql, ...values)),
    run: (sql, ...values) => inTurn(() => queries.run(sql, ...values)),
    transaction: (work) =>
      inTurn(() => open.transaction(() => work({ ...queries, mayHaveCommitted: false }))),
    snapshot: (work) => inTurn(() => open.snapshot(() => work(queries))),
    stopWaiting: stop,
    close: () => inTurn(async () => open.close()),
  }
}

const texts = new Map<string, string>()

/** Replaces `$1` with `?1`: SQLite reads `$1` as a name, and numbers names in the order of their first use. */
function statementOf(
  sql: string,
  values: readonly SqlValue[],
  { now }: Pick<Clock, 'now'>,
): readonly [string, ...SqliteValue[]] {
  const text = texts.get(sql) ?? sql.replaceAll(NOW, `?${values.length + 1}`).replace(/\$(?=\d)/g, '?')
  texts.set(sql, text)
  return [text, ...values.map(encode), ...(sql.includes(NOW) ? [now()] : [])]
}

/** SQLite has neither booleans nor lists. */
const encode = (value: SqlValue): SqliteValue => {
  if (typeof value === 'boolean') return value ? 1 : 0
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : value
}
