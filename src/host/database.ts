/** SQLite databases in private files (0600), with numbered migrations. Several processes can use a file at once. */
import { closeSync, existsSync, openSync, readSync, renameSync, rmSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { pathToFileURL } from 'node:url'
import type Libsql from 'libsql'
import { messageOf, usageError } from '../errors.js'
import { makeFolders } from './file-system.js'
import { describeReason, errorCode } from './system-error.js'

export type Row = Readonly<Record<string, unknown>>
export type SqlValue = string | number | bigint | Uint8Array | null
export type Synchronous = 'FULL' | 'NORMAL' | 'OFF'
export type SqliteConnection = Libsql.Database

export const BUSY_TIMEOUT_MS = 10_000

/** Loads the native package on first use: most commands work without it. */
export function connect(path: string): SqliteConnection {
  let Driver: typeof Libsql
  try {
    Driver = createRequire(import.meta.url)('libsql')
  } catch (error) {
    const reason = messageOf(error).replace(/[.\s]*(\n.*)?$/s, '')
    throw usageError(
      `The SQLite package for this system (${process.platform}-${process.arch}) cannot be loaded: ${reason}.`,
      'Install rushes again on this machine, without --omit=optional: `npm install -g rushes`.',
    )
  }
  try {
    return new Driver(path)
  } catch (error) {
    // libsql names the reason only by SQLite's number.
    if (error instanceof Error && /: 14\b/.test(error.message))
      Object.assign(error, { code: 'SQLITE_CANTOPEN' })
    throw error
  }
}

/**
 * Returns the URI of a file, with the mode of its opening. SQLite accepts no host in it, so the server of a network
 * folder becomes a part of the path.
 */
export const sqliteUri = (path: string, mode: 'ro' | 'rw', windows = process.platform === 'win32'): string =>
  `${pathToFileURL(path, { windows }).href.replace(/^file:\/\/(?=[^/])/, 'file:////')}?mode=${mode}`

/** Runs `work` on a file that is opened without creating or migrating it, and closes the file. */
export function withDatabase<Result>(
  path: string,
  busyTimeoutMs: number,
  work: (database: SqliteConnection) => Result,
): Result {
  const database = connect(path)
  try {
    // The default of libsql is 0.
    database.exec(`PRAGMA busy_timeout = ${Math.round(busyTimeoutMs)}`)
    return work(database)
  } finally {
    database.close()
  }
}

/** Creates the file with mode 0600, which -wal and -shm inherit; libsql would create it with 0644. */
export function createPrivately(path: string): void {
  makeFolders(dirname(path), 0o700)
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
}

/**
 * Runs `work` in one process at a time. SQLite holds an operating system's lock on an empty file; the system releases
 * it however the process ends.
 */
function exclusively<Result>(path: string, busyTimeoutMs = BUSY_TIMEOUT_MS, work: () => Result): Result {
  createPrivately(path)
  return withDatabase(path, busyTimeoutMs, (database) => {
    database.exec('BEGIN EXCLUSIVE')
    return work()
  })
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

/** SQLite also treats a file of one byte as empty. A file is created with its content, so an empty one has lost it. */
export const isEmpty = ({ size }: { readonly size: number }): boolean => size <= 1

/** The inode distinguishes a file from its replacement. A bigint, because Windows has inodes above 2^53. */
const inodeOf = (path: string): bigint | undefined =>
  statSync(path, { bigint: true, throwIfNoEntry: false })?.ino

export interface OpenDatabase {
  /** Runs one statement. `changes`: number of changed rows. */
  run(sql: string, ...values: readonly SqlValue[]): { readonly changes: number }
  get(sql: string, ...values: readonly SqlValue[]): Row | undefined
  all(sql: string, ...values: readonly SqlValue[]): readonly Row[]
  /**
   * Runs `work` in a transaction. Takes the write lock immediately: a transaction that reads first and then writes can
   * fail with SQLITE_BUSY in spite of the busy timeout. Inside another transaction it creates a savepoint, which can
   * fail without the outer transaction. Throws `ReplacedFile` if the file is not current. If `work` returns a promise,
   * the transaction ends with it: `work` then waits for nothing but statements of this database.
   */
  transaction<Result>(work: () => Result): Result
  /** Runs `work` so that all its reads see the same state; other processes can still write. */
  snapshot<Result>(work: () => Result): Result
  /** For the transactions from now on. */
  setSynchronous(level: Synchronous): void
  /** Returns false if the file was removed or replaced: writes are lost. */
  isCurrent(): boolean
  /** Identifies the file, also after it was renamed. */
  readonly inode: bigint | undefined
  close(): void
}

/** The file was written by a newer version of the program. */
export class NewerFormat extends Error {
  override readonly name = 'NewerFormat'
}

/** The file was removed or replaced while it was open. `code` is SQLite's code for a moved database. */
export class ReplacedFile extends Error {
  override readonly name = 'ReplacedFile'
  readonly code = 'SQLITE_READONLY_DBMOVED'
  constructor() {
    super('the database file was removed or replaced while it was open')
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
}

/** Opens a database; creates and migrates it if needed. Throws `NewerFormat`, or the error of a corrupt or unwritable file. */
export function openDatabase(options: DatabaseOptions): OpenDatabase {
  const { path, migrations, busyTimeoutMs = BUSY_TIMEOUT_MS, synchronous = 'FULL' } = options
  createIfMissing(options)
  const inode = inodeOf(path)
  // Not created again, if another process has just renamed it.
  const database = connect(sqliteUri(path, 'rw'))
  try {
    database.exec(`PRAGMA busy_timeout = ${Math.round(busyTimeoutMs)}`)
    enableWal(database, busyTimeoutMs)
    // On macOS, only a full sync survives a power failure. Other systems ignore `fullfsync`.
    database.exec(`PRAGMA synchronous = ${synchronous}; PRAGMA fullfsync = ON; PRAGMA foreign_keys = ON`)
    const open = wrap(database, path, inode)
    migrate(open, database, migrations)
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

/** Creates the file under another name and then renames it, so that it is never seen half-made. */
function createIfMissing({ path, migrations, busyTimeoutMs }: DatabaseOptions): void {
  if (existsSync(path)) return
  exclusively(`${path}.lock`, busyTimeoutMs, () => {
    // Another process was faster.
    if (existsSync(path)) return
    const fresh = `${path}.new`
    rmSync(fresh, { force: true })
    createPrivately(fresh)
    // No other process knows the file yet, and an incomplete one is never used: it needs no rollback journal on disk.
    const version = `PRAGMA user_version = ${migrations.length}; COMMIT`
    const script = ['PRAGMA journal_mode = MEMORY; BEGIN', ...migrations, version].join(';')
    // `exec` leaves no statement that keeps the file open.
    withDatabase(fresh, 0, (database) => database.exec(script))
    renameSync(fresh, path)
  })
}

const WRITES = /^\s*(WITH\b.*\b)?(INSERT|UPDATE|DELETE|REPLACE)\b/is

/** Replaces NUL by its symbol (U+2400): libsql returns a stored text only up to its first NUL. */
const bound = (values: readonly SqlValue[]): SqlValue[] =>
  values.map((value) => (typeof value === 'string' ? value.replaceAll('\0', '\u2400') : value))

function wrap(database: SqliteConnection, path: string, inode: bigint | undefined): OpenDatabase {
  const statements = new Map<string, Libsql.Statement>()
  const isCurrent = () => inodeOf(path) === inode
  let [isOpen, isClosed] = [false, false]

  /** Runs `work`, then the statement that ends it well or badly. */
  function within<Result>(begin: string, commit: string, rollBack: string, work: () => Result): Result {
    database.exec(begin)
    const done = <Value>(value: Value): Value => {
      database.exec(commit)
      return value
    }
    const fail = (error: unknown): never => {
      // SQLite itself rolls back if the disk is full.
      if (database.inTransaction) database.exec(rollBack)
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
    if (isOpen) {
      // A full disk rolls back the whole transaction, and later statements would be committed separately.
      if (!database.inTransaction) throw new Error('the transaction was rolled back')
      return within('SAVEPOINT part', 'RELEASE part', 'ROLLBACK TO part; RELEASE part', work)
    }
    const end = () => {
      isOpen = false
    }
    let result: Result
    try {
      result = within('BEGIN IMMEDIATE', 'COMMIT', 'ROLLBACK', () => {
        isOpen = true
        if (!isCurrent()) throw new ReplacedFile()
        return work()
      })
    } catch (error) {
      end()
      throw error
    }
    if (result instanceof Promise) return result.finally(end) as Result
    end()
    return result
  }

  /**
   * Runs one statement; a single write gets its own transaction. libsql does not reset a statement that failed with
   * SQLITE_BUSY. Until it is reset, this connection commits nothing, although later writes report success. A failed
   * BEGIN has no such effect.
   */
  function perform<Result>(sql: string, work: (statement: Libsql.Statement) => Result): Result {
    const statement = statements.get(sql) ?? database.prepare(sql)
    statements.set(sql, statement)
    const isAlone = !database.inTransaction && WRITES.test(sql)
    return isAlone ? transaction(() => work(statement)) : work(statement)
  }

  return {
    // Pass the values as one list: libsql treats a single null as an object of named values.
    run: (sql, ...values) => perform(sql, (statement) => ({ changes: statement.run(bound(values)).changes })),
    get: (sql, ...values) => perform(sql, (statement) => statement.get(bound(values)) as Row | undefined),
    all: (sql, ...values) => perform(sql, (statement) => statement.all(bound(values)) as Row[]),
    transaction,
    snapshot: (work) => within('BEGIN', 'ROLLBACK', 'ROLLBACK', work),
    setSynchronous: (level) => database.exec(`PRAGMA synchronous = ${level}`),
    isCurrent,
    inode,
    close() {
      if (isClosed) return
      isClosed = true
      statements.clear()
      try {
        // Moves all data into the main file, so that none is lost with the log. Does not wait for other processes.
        if (isCurrent()) database.exec('PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE)')
      } catch {
        // The next process that opens the file reads the log.
      }
      database.close()
    },
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
  })
}

export const isCorruption = (error: unknown): boolean =>
  /^SQLITE_(CORRUPT|NOTADB)/.test(errorCode(error) ?? '')

/** Corruption that SQLite itself does not report. */
class DamagedFile extends Error {
  readonly code = 'SQLITE_CORRUPT'
}

function refuseEmpty(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found !== undefined && isEmpty(found)) throw new DamagedFile('the file is empty')
}

/**
 * Refuses a file that has lost its end: SQLite reads zeros where a part of the last page is missing, and rows are lost;
 * missing pages it notices only when it needs them. Pages may be in the log instead.
 */
function refuseCut(open: OpenDatabase, path: string): void {
  open.snapshot(() => {
    const pageBytes = Number(open.get('PRAGMA page_size')?.page_size)
    open.get('SELECT 1 FROM sqlite_schema')
    const bytes = Number(open.get('PRAGMA page_count')?.page_count) * pageBytes
    if (sizeOf(path) % pageBytes === 0 && (sizeOf(`${path}-wal`) > 0 || sizeOf(path) >= bytes)) return
    throw new DamagedFile('the end of the file is missing')
  })
}

/** Maximum number of attempts to open a file. One that changes more often is not being replaced. */
const MAX_ATTEMPTS = 5

/** Opens a database. A damaged file is renamed, because parts of it may still be readable, and replaced by a new one. */
export function openOrQuarantine(options: DatabaseOptions, onQuarantine: (to: string) => void): OpenDatabase {
  const { path } = options
  for (let attempt = 1; ; attempt++) {
    const found = inodeOf(path)
    let open: OpenDatabase | undefined
    try {
      refuseEmpty(path)
      open = openDatabase(options)
      refuseCut(open, path)
      if (open.isCurrent() || attempt === MAX_ATTEMPTS) return open
      open.close()
    } catch (error) {
      open?.close()
      if (attempt === MAX_ATTEMPTS) throw error
      if (isCorruption(error)) quarantine(options, found, onQuarantine)
      // Another process may have renamed the file during this attempt.
      else if (inodeOf(path) === found) throw error
    }
  }
}

/** SQLite finds the logs by the name of the database, so they are moved first: a new file never gets an old log. */
const MOVED_ENDINGS = ['-journal', '-wal', '-shm', '']

/** Renames the file with inode `found`, unless another process has already renamed it. */
function quarantine(
  { path, busyTimeoutMs }: DatabaseOptions,
  found: bigint | undefined,
  onQuarantine: (to: string) => void,
): void {
  const to = quarantineName(path)
  const isRenamed = exclusively(`${path}.lock`, busyTimeoutMs, () => {
    if (inodeOf(path) !== found) return false
    for (const ending of MOVED_ENDINGS) if (existsSync(path + ending)) renameSync(path + ending, to + ending)
    return true
  })
  if (isRenamed) onQuarantine(to)
}

const quarantineName = (path: string): string =>
  `${path}.damaged-${new Date().toISOString().replace(/[^0-9TZ]/g, '')}-${process.pid}`

/** Position in the header. 1: not in WAL mode. */
const WAL_OFFSET = 18

/**
 * Leaves the file open: when a process closes any descriptor of a file, the system releases all locks of that process on
 * the file, including SQLite's.
 */
function isInWalMode(path: string): boolean {
  const header = Buffer.alloc(1)
  readSync(openSync(path, 'r'), header, 0, 1, WAL_OFFSET)
  return header[0] !== 1
}

/**
 * Renames a log (-wal) that belongs to another database. SQLite would read a log beside a file that is not in WAL mode,
 * such as a restored backup.
 */
export function quarantineForeignLog(path: string): void {
  const log = `${path}-wal`
  // Check the log first: a file is in WAL mode before it has a log.
  if (!existsSync(log) || isInWalMode(path)) return
  renameSync(log, quarantineName(log))
  rmSync(`${path}-shm`, { force: true })
}

const INSPECT_TIMEOUT_MS = 2_000

/**
 * Checks a file without writing to it. Returns `ok`, or the problems that were found. Throws the error of a file that
 * cannot be read now, for example because it is locked: that proves nothing about its content.
 */
export function integrityOf(path: string): string {
  try {
    refuseEmpty(path)
    return withDatabase(path, INSPECT_TIMEOUT_MS, (database) => {
      const rows = database.prepare('PRAGMA integrity_check').all() as { integrity_check: string }[]
      return rows.map(({ integrity_check }) => integrity_check).join('; ')
    })
  } catch (error) {
    if (!isCorruption(error)) throw error
    return describeReason(error)
  }
}
