/** The store's contract on SQLite, in one file that several processes can open at the same time. */
import { existsSync, statSync } from 'node:fs'
import { RushesError, usageError } from '../../../errors.js'
import { type Clock, systemClock } from '../../../host/clock.js'
import {
  isCorruption,
  isEmpty,
  NewerFormat,
  type OpenDatabase,
  openDatabase,
  quarantineForeignLog,
  ReplacedFile,
  type SqlValue as SqliteValue,
} from '../../../host/database.js'
import { errorCode, isBusy } from '../../../host/system-error.js'
import { createStore, type Store, type StoreParts } from '../index.js'
import { scriptsOf } from '../schema.js'
import {
  createCompiler,
  type Database,
  DatabaseRetry,
  type Queries,
  type SqlValue,
  type Values,
} from '../sql.js'

const REFUSED = "'the ledger of credits is only ever added to'"

/** `INTEGER PRIMARY KEY AUTOINCREMENT`: no number is given again, also that of a removed row. */
export const SQLITE_SCRIPTS = scriptsOf({
  sequence: 'INTEGER PRIMARY KEY AUTOINCREMENT',
  integer: 'INTEGER',
  boolean: 'INTEGER',
  randomId: 'lower(hex(randomblob(16)))',
  options: ' STRICT',
  changing: ' STRICT',
  more: `
CREATE TRIGGER credits_stay BEFORE UPDATE ON credits BEGIN SELECT RAISE(ABORT, ${REFUSED}); END;
CREATE TRIGGER credits_remain BEFORE DELETE ON credits BEGIN SELECT RAISE(ABORT, ${REFUSED}); END;
`,
})

/** Throws `RushesError` (usage) if the file cannot be used or was written by another version of `rushes`. */
export function openSqliteStore(path: string, clock: Pick<Clock, 'now'> = systemClock): Store {
  return createStore(partsOn(openServiceDatabase(path), clock))
}

/** Ending of a database whose data `rushes admin migrate` has moved. */
export const MOVED = '.moved'

/** Throws as `openSqliteStore` does. */
export function openServiceDatabase(
  path: string,
  options: { readonly busyTimeoutMs?: number } = {},
): OpenDatabase {
  refuseLost(path)
  try {
    if (existsSync(path)) quarantineForeignLog(path)
    return openDatabase({ ...options, path, migrations: SQLITE_SCRIPTS })
  } catch (error) {
    throw explainDatabaseError(path, error) ?? error
  }
}

/** Throws if the database was lost: a service must not continue with a new database and a new first key. */
function refuseLost(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined && existsSync(`${path}${MOVED}`))
    throw usageError(
      `The data of ${path} was moved to another database.`,
      `Use it there (--database). To use this folder again as it was, rename ${path}${MOVED} to ${path}.`,
    )
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false })
  const isLost = found === undefined ? log !== undefined && log.size > 0 : isEmpty(found)
  if (isLost)
    throw usageError(
      `${path} is ${found === undefined ? 'missing, and its log is there' : 'empty'}: ` +
        'the accounts and runs of this service are gone.',
      'Restore a backup (docs/operations.md). ' +
        'To start with new data, remove its files (service.db*), or use another data folder (--data).',
    )
}

/** Explains an error of the database. Returns undefined for other errors. */
export function explainDatabaseError(path: string, error: unknown): RushesError | undefined {
  if (error instanceof NewerFormat)
    return usageError(
      `${path} was written by another version of rushes: it has ${error.message}.`,
      'Use that version, or another data folder (--data).',
    )
  if (isCorruption(error))
    return new RushesError('usage', `${path} is damaged, or not a database.`, { hint: RESTORE, cause: error })
  if (isBusy(error))
    return usageError(
      `${path} is locked by another process.`,
      'End the program that holds it (`fuser -v` or `lsof` with the path shows which), and try again.',
    )
  return undefined
}

const RESTORE =
  'Keep a copy of it, stop the service, and restore a backup made with `rushes admin backup` (docs/operations.md).'

const compiled = createCompiler({
  sign: '?',
  words: {
    // The time of this process, which is bound to each statement: it and the file are on one machine.
    now: ':now',
    lock: '',
    lock_free: '',
    lock_shared: '',
    in: 'IN (SELECT value FROM json_each(?))',
    list: 'json_each(?) AS list',
    index: 'INDEXED BY ?',
    position: 'instr',
    ascii: '',
  },
})

/**
 * The last call of this thread. Calls run one after the other, also those of several connections: a statement must not
 * become a part of the transaction of another call, and waiting for a lock that this thread holds would never end.
 */
let last: Promise<unknown> = Promise.resolve()

function inTurn<Result>(work: () => Result | Promise<Result>): Promise<Result> {
  const result = last.then(work)
  last = result.catch(() => {})
  return result
}

/** How long one attempt may keep the event loop. Between attempts, other calls of this process go on. */
const ATTEMPT_MS = 25

function partsOn(open: OpenDatabase, clock: Pick<Clock, 'now'>): StoreParts {
  open.get(`PRAGMA busy_timeout = ${ATTEMPT_MS}`)
  const retry = new DatabaseRetry()
  const read = <Result>(work: () => Result | Promise<Result>) => retry.run(() => inTurn(work), isBusy)
  const bound = (sql: string, values: Values = {}): readonly [string, ...SqliteValue[]] => {
    const { text, list } = compiled(sql, { ...values, now: clock.now() })
    return [text, ...list.map(encode)]
  }
  const queries: Queries = {
    all: async (sql, values) => open.all(...bound(sql, values)),
    async get(sql, values) {
      const row = open.get(...bound(sql, values))
      // If the file was removed or replaced, a missing row proves nothing.
      if (row === undefined && !open.isCurrent()) throw new ReplacedFile()
      // libsql adds it to the columns.
      if (row !== undefined) Reflect.deleteProperty(row, '_metadata')
      return row
    },
    run: async (sql, values) => open.run(...bound(sql, values)).changes,
  }
  const writes = new SharedTransactions(open)
  const write = <Result>(work: () => Promise<Result>) => retry.run(() => writes.add(work), isBusy)
  const transaction: Database['transaction'] = (work) =>
    write(() => work({ ...queries, mayHaveCommitted: false }))
  const database: Database = {
    all: (sql, values) => (WRITES.test(sql) ? write : read)(() => queries.all(sql, values)),
    get: (sql, values) => (WRITES.test(sql) ? write : read)(() => queries.get(sql, values)),
    run: (sql, values) => write(() => queries.run(sql, values)),
    transaction,
    repeatable: transaction,
    snapshot: (work) => read(() => open.snapshot(() => work(queries))),
  }
  return {
    database,
    pages: database,
    // A copy of the file has another inode.
    identity: async () => String(open.inode),
    stopWaiting: () => retry.stop(),
    close: () => inTurn(() => open.close()),
  }
}

const WRITES = /^\s*(INSERT|UPDATE|DELETE)\b/i

interface WaitingWrite {
  work(): Promise<unknown>
  settle(outcome: PromiseSettledResult<unknown>): void
}

/**
 * Writes that wait at the same time share one transaction, because its commit waits for the disk. Each is a savepoint of its
 * own, and ends when all are on the disk.
 */
class SharedTransactions {
  readonly #open: OpenDatabase
  #waiting: WaitingWrite[] = []

  constructor(open: OpenDatabase) {
    this.#open = open
  }

  add<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = new Promise<Result>((resolve, reject) => {
      this.#waiting.push({
        work,
        settle: (outcome) =>
          outcome.status === 'fulfilled' ? resolve(outcome.value as Result) : reject(outcome.reason),
      })
    })
    if (this.#waiting.length === 1) void inTurn(() => this.#commit())
    return result
  }

  async #commit(): Promise<void> {
    // The other requests that have arrived join.
    await new Promise(setImmediate)
    const writes = this.#waiting
    this.#waiting = []
    const outcomes: PromiseSettledResult<unknown>[] = []
    try {
      await this.#open.transaction(async () => {
        for (const { work } of writes) {
          const [outcome] = await Promise.allSettled([(async () => this.#open.transaction(work))()])
          // SQLite may have rolled back the whole transaction.
          if (outcome.status === 'rejected' && ENDS_ALL.test(errorCode(outcome.reason) ?? ''))
            throw outcome.reason
          outcomes.push(outcome)
        }
      })
    } catch (reason) {
      outcomes.splice(0, outcomes.length, ...writes.map(() => ({ status: 'rejected', reason }) as const))
    }
    for (const [at, outcome] of outcomes.entries()) writes[at]?.settle(outcome)
  }
}

/** Errors of the disk, of the file and of memory, which are those of all writes of a transaction. */
const ENDS_ALL = /^SQLITE_(BUSY|CANTOPEN|CORRUPT|FULL|INTERRUPT|IOERR|LOCKED|NOMEM|NOTADB|PROTOCOL|READONLY)/

/** SQLite has neither booleans nor lists. */
const encode = (value: SqlValue): SqliteValue => {
  if (typeof value === 'boolean') return value ? 1 : 0
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : value
}
