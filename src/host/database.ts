/** SQLite: private files that several processes use at once, with numbered migrations. */
import { randomBytes } from 'node:crypto'
import { existsSync, linkSync, renameSync, rmSync } from 'node:fs'
import {
  BUSY_TIMEOUT_MS,
  connect,
  createPrivately,
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

export interface OpenDatabase {
  /** Runs one statement; `changes` is the number of rows it touched. */
  run(sql: string, ...values: readonly SqlValue[]): { readonly changes: number }
  get(sql: string, ...values: readonly SqlValue[]): Row | undefined
  all(sql: string, ...values: readonly SqlValue[]): readonly Row[]
  /**
   * All or nothing. Takes the write lock at once: a transaction that reads first and then writes can fail with
   * SQLITE_BUSY with any busy timeout. Within another transaction it is a savepoint, which can fail alone. Throws
   * `ReplacedFile` when the file is not current: nothing is written into another database.
   */
  transaction<Result>(work: () => Result): Result
  /** All reads in it see the same state; other processes may write meanwhile. */
  snapshot<Result>(work: () => Result): Result
  /** False when the file was removed, emptied, replaced or overwritten: writes are lost. */
  isCurrent(): boolean
  /** Path as given to `openDatabase`. */
  readonly path: string
  /** Identifies the file, also after it was renamed. */
  readonly inode: number | undefined
  close(): void
}

/** The file was written by a newer version of the program. */
export class NewerFormat extends Error {
  override readonly name = 'NewerFormat'
}

/** The file was removed, replaced or overwritten while it was open. The code is SQLite's own for this. */
export class ReplacedFile extends Error {
  override readonly name = 'ReplacedFile'
  readonly code = 'SQLITE_READONLY_DBMOVED'
  constructor() {
    super('the database file was removed, replaced or overwritten while it was open')
  }
}

export interface DatabaseOptions {
  readonly path: string
  /** Script n migrates from version n to n+1. A released script never changes. */
  readonly migrations: readonly string[]
  /** How long a statement waits for the lock of another process. */
  readonly busyTimeoutMs?: number
  /**
   * `FULL`: a commit survives a power failure. `OFF`: no fsync; a commit survives a crash of the process, and a power
   * failure may corrupt the file.
   */
  readonly synchronous?: 'FULL' | 'OFF'
  /**
   * `WAL` (the default): reading and writing do not wait for each other, but recent commits are in a second file
   * (-wal), and are lost with it. `TRUNCATE`: every commit is in the file itself when it returns, and costs two or
   * three times as much.
   */
  readonly journalMode?: 'WAL' | 'TRUNCATE'
}

/** Throws `NewerFormat`, or the database's error when the file is corrupt or cannot be created. */
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
    // libsql's default is 0.
    database.exec(`PRAGMA busy_timeout = ${Math.round(busyTimeoutMs)}`)
    let isDecided = true
    if (journalMode === 'WAL') enableWal(database, busyTimeoutMs)
    else isDecided = disableWal(database, busyTimeoutMs)
    database.exec(`PRAGMA synchronous = ${synchronous}; PRAGMA foreign_keys = ON`)
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
 * SQLite ignores the busy timeout when it switches a new file to WAL mode: if several processes start at once, all but
 * one fail. Retries instead. Returns immediately if the file is in WAL mode already.
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
 * Returns false if the file is locked. It does not wait, because the first statement does. A file stays in WAL mode
 * while another process, such as an earlier version of the program, has it open.
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
 * Creates a database that is complete in its one file, with no open handles when this returns. With `openDatabase`,
 * prepared statements keep locks and the log open until they are garbage collected, even after `close`.
 */
export function createDatabase({ path, migrations }: DatabaseOptions, firstRows = ''): void {
  createPrivately(path)
  withDatabase(path, BUSY_TIMEOUT_MS, (database) =>
    database.exec(
      `BEGIN; ${[...migrations, firstRows].join(';')}; PRAGMA user_version = ${migrations.length}; ${newApplicationId()}; COMMIT`,
    ),
  )
}

/**
 * Creates the file under a temporary name and then links it to its path, so that an empty file at the path is never one
 * in creation. Does nothing if the file exists. `firstRows` is SQL for a new file.
 */
export function createIfMissing(options: DatabaseOptions, firstRows?: string): void {
  const { path } = options
  if (existsSync(path)) return
  // A random name, not the process id: a process in another container may have the same id.
  const fresh = `${path}.${randomBytes(6).toString('hex')}.new`
  const removeFresh = () => {
    for (const ending of ['', '-journal']) rmSync(fresh + ending, { force: true })
  }
  try {
    createDatabase({ ...options, path: fresh }, firstRows)
    linkSync(fresh, path)
  } catch (error) {
    // Another process was faster, or the file system does not support hard links.
    if (existsSync(path)) return
    if (errorCode(error)?.startsWith('E') !== true || !existsSync(fresh)) throw error
    renameSync(fresh, path)
  } finally {
    removeFresh()
  }
}

const WRITES = /^\s*(WITH\b.*\b)?(INSERT|UPDATE|DELETE|REPLACE)\b/is

interface PreparedStatement {
  readonly statement: SqliteStatement
  readonly writes: boolean
}

function wrap(database: SqliteConnection, path: string, inode: number | undefined): OpenDatabase {
  const identity = identifyFile(path, inode)
  const statements = new Map<string, PreparedStatement>()
  const prepare = (sql: string): PreparedStatement => {
    const prepared = statements.get(sql) ?? { statement: database.prepare(sql), writes: WRITES.test(sql) }
    statements.set(sql, prepared)
    return prepared
  }
  const exec = (sql: string) => database.exec(sql)

  function inTransaction<Result>(begin: string, work: () => Result): Result {
    exec(begin)
    try {
      const result = work()
      exec('COMMIT')
      return result
    } catch (error) {
      rollBack(database)
      throw error
    }
  }

  let isOpen = false

  /** Within another transaction: a savepoint, which can fail alone. */
  function transaction<Result>(work: () => Result): Result {
    if (!isOpen) {
      try {
        return inTransaction('BEGIN IMMEDIATE', () => {
          isOpen = true
          if (!identity.isCurrent()) throw new ReplacedFile()
          return work()
        })
      } finally {
        isOpen = false
      }
    }
    // A full disk rolls back the whole transaction. Later statements would be committed on their own.
    if (!database.inTransaction) throw new Error('the transaction was rolled back')
    return inSavepoint(work)
  }

  function inSavepoint<Result>(work: () => Result): Result {
    exec('SAVEPOINT part')
    try {
      const result = work()
      exec('RELEASE part')
      return result
    } catch (error) {
      if (database.inTransaction) exec('ROLLBACK TO part; RELEASE part')
      throw error
    }
  }

  /**
   * A single write runs in a transaction too. libsql does not reset a statement that failed with SQLITE_BUSY, and
   * until that is reset this connection commits nothing, although further writes report success. A failed BEGIN has
   * no such effect.
   */
  function perform<Result>(sql: string, work: (statement: SqliteStatement) => Result): Result {
    const { statement, writes } = prepare(sql)
    return writes && !database.inTransaction ? transaction(() => work(statement)) : work(statement)
  }

  let isClosed = false
  return {
    // Values as one list: libsql takes a single null for an object of named values.
    run: (sql, ...values) => perform(sql, (statement) => ({ changes: statement.run(values).changes })),
    get: (sql, ...values) => perform(sql, (statement) => statement.get(values) as Row | undefined),
    all: (sql, ...values) => perform(sql, (statement) => statement.all(values) as Row[]),
    transaction,
    snapshot: (work) => inTransaction('BEGIN', work),
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
 * In WAL mode, moves everything into the main file, so that nothing is lost with the log, and empties the log, so that
 * it is never read together with a replacement file. Does not wait for other processes.
 */
function closeLog(database: SqliteConnection, path: string, identity: FileIdentity): void {
  try {
    if (identity.isCurrent()) database.exec('PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE)')
    // SQLite writes the log into the file when it closes, unless the file was moved.
    else if (!identity.wasMoved()) setAsideLog(path)
  } catch {
    // The next process that opens the file reads the log.
  }
}

function migrate(open: OpenDatabase, database: SqliteConnection, migrations: readonly string[]): void {
  const version = () => Number(open.get('PRAGMA user_version')?.user_version ?? 0)
  if (version() === migrations.length) return
  open.transaction(() => {
    // Read again under the lock: another process may have migrated meanwhile.
    const from = version()
    if (from > migrations.length)
      throw new NewerFormat(`format ${from}, this version knows formats up to ${migrations.length}`)
    for (const script of migrations.slice(from)) database.exec(script)
    database.exec(`PRAGMA user_version = ${migrations.length}`)
    if (open.get('PRAGMA application_id')?.application_id === 0) database.exec(newApplicationId())
  })
}
