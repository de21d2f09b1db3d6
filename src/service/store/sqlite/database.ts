/** The store's statements and transactions on SQLite. */
import type { OpenDatabase, SqlValue as SqliteValue } from '../../../host/database.js'
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
  slot: 'INTEGER',
  randomId: SQLITE_RANDOM_ID,
  options: ' STRICT',
  changing: ' STRICT',
  more: `
CREATE TRIGGER credits_stay BEFORE UPDATE ON credits BEGIN SELECT RAISE(ABORT, ${REFUSED}); END;
CREATE TRIGGER credits_remain BEFORE DELETE ON credits BEGIN SELECT RAISE(ABORT, ${REFUSED}); END;
`,
})

const DIALECT: Dialect = {
  lock: () => '',
  lockShared: '',
  lockFree: '',
  lockClaims: undefined,
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
  close(): Promise<void>
}

export function createSqliteDatabase(open: OpenDatabase): SqliteDatabase {
  function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = last.then(work)
    last = result.catch(() => {})
    return result
  }

  const queries: Queries = {
    all: async (sql, ...values) => open.all(textOf(sql), ...values.map(encode)),
    get: async (sql, ...values) => open.get(textOf(sql), ...values.map(encode)),
    run: async (sql, ...values) => open.run(textOf(sql), ...values.map(encode)).changes,
  }
  return {
    dialect: DIALECT,
    all: (sql, ...values) => inTurn(() => queries.all(sql, ...values)),
    get: (sql, ...values) => inTurn(() => queries.get(sql, ...values)),
    run: (sql, ...values) => inTurn(() => queries.run(sql, ...values)),
    transaction: (work) =>
      inTurn(() => open.transaction(() => work({ ...queries, mayHaveCommitted: false }))),
    snapshot: (work) => inTurn(() => open.snapshot(() => work(queries))),
    close: () => inTurn(async () => open.close()),
  }
}

const texts = new Map<string, string>()

/** Replaces `$1` with `?1`. SQLite reads `$1` as a name, and numbers names in the order of their first use. */
function textOf(sql: string): string {
  const known = texts.get(sql) ?? sql.replace(/\$(?=\d)/g, '?')
  texts.set(sql, known)
  return known
}

/** SQLite has neither booleans nor lists. */
const encode = (value: SqlValue): SqliteValue => {
  if (typeof value === 'boolean') return value ? 1 : 0
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : value
}
