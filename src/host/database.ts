/** SQLite databases in private files, with numbered migrations. Several processes can use a file at once. */
import { randomBytes } from 'node:crypto'
import { existsSync, linkSync, renameSync, rmSync } from 'node:fs'
import {
  BUSY_TIMEOUT_MS,
  bound,
  connect,
  createPrivately,
  exclusively,
  type FileIdentity,
  identifyFile,
  inodeOf,
  newApplicationId,
  type Row,
  rollBack,
  type SqliteConnection,
  type SqliteStatement,
  type SqlValue,
  setAsideLog,
  withDatabase,
} from './database-file.js'
import { errorCode } from './system-error.js'

export type { Row, SqlValue }
export type Synchronous = 'FULL' | 'NORMAL' | 'OFF'

export interface OpenDatabase {
  /** Runs one statement. `changes`: number of changed rows. */
  run(sql: string, ...values: readonly SqlValue[]): { readonly changes: number }
  get(sql: string, ...values: readonly SqlValue[]): Row | undefined
  all(sql: string, ...values: readonly SqlValue[]): readonly Row[]
  /**
   * Runs `work` in a transaction. Takes the write lock immediately: a transaction that reads first and then writes can
   * fail with SQLITE_BUSY in spite of the busy timeout. Inside another transaction it creates a savepoint, which can
   * fail without the outer transaction. Throws `ReplacedFile` if the file is not current, so that nothing is written to
   * another database. If `work` returns a promise, the transaction ends with it: `work` then waits for nothing but
   * statements of this database.
   */
  transaction<Result>(work: () => Result): Result
  /** Runs `work` so that all its reads see the same state; other processes can still write. */
  snapshot<Result>(work: () => Result): Result
  /** For the transactions from now on. */
  setSynchronous(level: Synchronous): void
  /** Returns false if the file was removed, emptied, replaced or overwritten: writes are lost. */
  isCurrent(): boolean
  /** Path as given to `openDatabase`. */
  readonly path: string
  /** Inode, which identifies the file even after it was renamed. */
  readonly inode: bigint | undefined
  close(): void
}

/** The file was written by a newer version of the program. */
export class NewerFormat extends Error {
  override readonly name = 'NewerFormat'
}

/** The file was removed, replaced or overwritten while it was open. `code` is SQLite's code for a moved database. */
export class ReplacedFile extends Error {
  override readonly name = 'ReplacedFile'
  readonly code = 'SQLITE_READONLY_DBMOVED'
  constructor() {
    super('the database file was removed, replaced or overwritten while it was open')
  }
}

export interface DatabaseOptions {
  readonly path: string
  /** SQL scripts. Script n migrates from version n to n+1. A released script never changes. */
  readonly migrations: readonly string[]
  /** Maximum time that a statement waits for the lock of another process. */
  readonly busyTimeoutMs?: number
  /**
   * `FULL`: a commit survives a power failure. `NORMAL`: a power failure may undo the last commits. `OFF`: a power
   * failure may corrupt the file. A crash of the process undoes nothing.
   */
  readonly synchronous?: Synchronous
  /**
   * `WAL` (the default): readers and writers do not wait for each other, but recent commits are lost with a second file
   * (-wal). `TRUNCATE`: every commit is in the main file when the call returns, and takes two or three times as long.
   */
  readonly journalMode?: 'WAL' | 'TRUNCATE'
  /** For tests. */
  readonly linkFile?: typeof linkSync
}

/** Opens a database; creates and migrates it if needed. Throws `NewerFormat`, or the error of a corrupt or unwritable file. */
export function openDatabase(options: DatabaseOptions): OpenDatabase {
  const {
    path,
    migrations,
    busyTimeoutMs = BUSY_TIMEOUT_MS,
    synchronous = 'FULL',
    journalMode = 'WAL',
  } = options
  createIfMissing(options)
  const inode = inodeOf(path)
  const database = connect(path)
  try {
    // The default of libsql is 0.
    database.exec(`PRAGMA busy_timeout = ${Math.round(busyTimeoutMs)}`)
    let isDecided = true
    if (journalMode === 'WAL') enableWal(database, busyTimeoutMs)
    else isDecided = disableWal(database, busyTimeoutMs)
    // On macOS, only a full sync survives a power failure. Other systems ignore `fullfsync`.
    database.exec(`PRAGMA synchronous = ${synchronous}; PRAGMA fullfsync = ON; PRAGMA foreign_keys = ON`)
    const open = wrap(database, path, inode)
    migrate(open, database, migrations)
    if (!isDecided) disableWal(database, busyTimeoutMs)
    return open
  } catch (error) {
    database.close()
    throw error
  }
}

const BUSY_PAUSE_MS = 5

/**
 * Switches the file to WAL mode, with retries: SQLite ignores the busy timeout for this, so if several processes start
 * at once, all but one would fail. Returns immediately if the file is already in WAL mode.
 */
function enableWal(database: SqliteConnection, timeoutMs: number): void {
  const startedMs = performance.now()
  for (;;) {
    try {
      database.exec('PRAGMA journal_mode = WAL')
      return
    } catch (error) {
      if (errorCode(error) !== 'SQLITE_BUSY' || performance.now() - startedMs > timeoutMs) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BUSY_PAUSE_MS)
    }
  }
}

/**
 * Switches the file to TRUNCATE mode. Returns false if the file is locked; does not wait, because the first statement
 * waits. The file stays in WAL mode while another process, such as an earlier version of the program, has it open.
 */
function disableWal(database: SqliteConnection, busyTimeoutMs: number): boolean {
  database.exec('PRAGMA busy_timeout = 0')
  try {
    database.exec('PRAGMA journal_mode = TRUNCATE')
    return true
  } catch (error) {
    if (errorCode(error) !== 'SQLITE_BUSY') throw error
    return false
  } finally {
    database.exec(`PRAGMA busy_timeout = ${Math.round(busyTimeoutMs)}`)
  }
}

/**
 * Creates a database in a single file, without open handles when the call returns. `openDatabase` does not guarantee
 * that: prepared statements keep locks and the log open until they are garbage collected, even after `close`.
 */
export function createDatabase({ path, migrations }: DatabaseOptions, firstRows = ''): void {
  createPrivately(path)
  withDatabase(path, BUSY_TIMEOUT_MS, (database) =>
    database.exec(
      // No other process knows the file yet, and an incomplete one is never used: it needs no rollback journal on disk.
      [
        'PRAGMA journal_mode = MEMORY; BEGIN',
        ...migrations,
        firstRows,
        `PRAGMA user_version = ${migrations.length}; ${newApplicationId()}; COMMIT`,
      ].join(';'),
    ),
  )
}

/**
 * Creates the file under a temporary name and then links it to its path. So an empty file at the path is never a file
 * that is still being created. Does nothing if the file exists.
 */
function createIfMissing(options: DatabaseOptions): void {
  const { path, linkFile = linkSync } = options
  if (existsSync(path)) return
  // Use a random name, not the process id: a process in another container may have the same id.
  const fresh = `${path}.${randomBytes(6).toString('hex')}.new`
  try {
    createDatabase({ ...options, path: fresh })
    linkFile(fresh, path)
  } catch (error) {
    // Another process was faster.
    if (existsSync(path)) return
    if (errorCode(error)?.startsWith('E') !== true || !existsSync(fresh)) throw error
    // The file system does not support hard links. A plain rename would replace the file of another process.
    exclusively(`${path}.lock`, options.busyTimeoutMs, () => {
      if (!existsSync(path)) renameSync(fresh, path)
    })
  } finally {
    rmSync(fresh, { force: true })
  }
}

const WRITES = /^\s*(WITH\b.*\b)?(INSERT|UPDATE|DELETE|REPLACE)\b/is

interface PreparedStatement {
  readonly statement: SqliteStatement
  readonly writes: boolean
}

type Scope = Readonly<Record<'commit' | 'rollBack', () => void>>

function wrap(database: SqliteConnection, path: string, inode: bigint | undefined): OpenDatabase {
  const identity = identifyFile(path, inode)
  const statements = new Map<string, PreparedStatement>()
  const prepare = (sql: string): PreparedStatement => {
    const prepared = statements.get(sql) ?? { statement: database.prepare(sql), writes: WRITES.test(sql) }
    statements.set(sql, prepared)
    return prepared
  }
  const exec = (sql: string) => database.exec(sql)

  let isOpen = false

  /** Begins a savepoint. A full disk rolls back the whole transaction, and later statements would be committed separately. */
  function beginPart(): Scope {
    if (!database.inTransaction) throw new Error('the transaction was rolled back')
    exec('SAVEPOINT part')
    return {
      commit: () => exec('RELEASE part'),
      rollBack: () => database.inTransaction && exec('ROLLBACK TO part; RELEASE part'),
    }
  }

  function beginWhole(): Scope {
    exec('BEGIN IMMEDIATE')
    isOpen = true
    return {
      commit() {
        exec('COMMIT')
        isOpen = false
      },
      rollBack() {
        isOpen = false
        rollBack(database)
      },
    }
  }

  /** Runs `work`, and ends the scope when it has ended. */
  function within<Result>({ commit, rollBack }: Scope, work: () => Result): Result {
    const done = <Value>(value: Value): Value => {
      commit()
      return value
    }
    const fail = (error: unknown): never => {
      rollBack()
      throw error
    }
    try {
      const result = work()
      return result instanceof Promise ? (result.then(done).catch(fail) as Result) : done(result)
    } catch (error) {
      return fail(error)
    }
  }

  function transaction<Result>(work: () => Result): Result {
    if (isOpen) return within(beginPart(), work)
    return within(beginWhole(), () => {
      if (!identity.isCurrent()) throw new ReplacedFile()
      return work()
    })
  }

  function snapshot<Result>(work: () => Result): Result {
    exec('BEGIN')
    const end = () => rollBack(database)
    return within({ commit: end, rollBack: end }, work)
  }

  /**
   * Runs one statement; a single write gets its own transaction. libsql does not reset a statement that failed with
   * SQLITE_BUSY. Until it is reset, this connection commits nothing, although later writes report success. A failed
   * BEGIN has no such effect.
   */
  function perform<Result>(sql: string, work: (statement: SqliteStatement) => Result): Result {
    const { statement, writes } = prepare(sql)
    return writes && !database.inTransaction ? transaction(() => work(statement)) : work(statement)
  }

  let isClosed = false
  return {
    // Pass the values as one list: libsql treats a single null as an object of named values.
    run: (sql, ...values) => perform(sql, (statement) => ({ changes: statement.run(bound(values)).changes })),
    get: (sql, ...values) => perform(sql, (statement) => statement.get(bound(values)) as Row | undefined),
    all: (sql, ...values) => perform(sql, (statement) => statement.all(bound(values)) as Row[]),
    transaction,
    snapshot,
    setSynchronous: (level) => exec(`PRAGMA synchronous = ${level}`),
    isCurrent: identity.isCurrent,
    path,
    inode,
    close: () => {
      if (isClosed) return
      isClosed = true
      statements.clear()
      closeLog(database, path, identity)
      database.close()
    },
  }
}

/**
 * In WAL mode, moves all data into the main file, so that no data is lost if the log is lost. Then empties the log, so
 * that it is never combined with a replacement file. Does not wait for other processes.
 */
function closeLog(database: SqliteConnection, path: string, identity: FileIdentity): void {
  try {
    if (identity.isCurrent()) database.exec('PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE)')
    // On close, SQLite writes the log into the file unless the file was moved: empty the log of a file that was
    // overwritten.
    else if (!identity.wasMoved()) setAsideLog(path)
  } catch {
    // Ignore errors: the next process that opens the file reads the log.
  }
}

function migrate(open: OpenDatabase, database: SqliteConnection, migrations: readonly string[]): void {
  const version = () => Number(open.get('PRAGMA user_version')?.user_version ?? 0)
  if (version() === migrations.length) return
  open.transaction(() => {
    // Read again under the lock, because another process may have migrated the file.
    const from = version()
    if (from > migrations.length)
      throw new NewerFormat(`format ${from}, this version knows formats up to ${migrations.length}`)
    for (const script of migrations.slice(from)) database.exec(script)
    database.exec(`PRAGMA user_version = ${migrations.length}`)
    if (open.get('PRAGMA application_id')?.application_id === 0) database.exec(newApplicationId())
  })
}
