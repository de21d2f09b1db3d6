/**
 * SQLite as any program needs it: private files, several processes at once, numbered migrations. Knows nothing of
 * what is stored.
 */

import { closeSync, existsSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { pathToFileURL } from 'node:url'
import Database from 'libsql'
import { messageOf } from '../errors.js'
import { errorCode, makeFolders } from './directories.js'

export type Row = Readonly<Record<string, unknown>>
export type Value = string | number | bigint | Uint8Array | null

export interface OpenDatabase {
  /** Runs one statement; `changes` is the number of rows it touched. */
  run(sql: string, ...values: readonly Value[]): { readonly changes: number }
  get(sql: string, ...values: readonly Value[]): Row | undefined
  all(sql: string, ...values: readonly Value[]): readonly Row[]
  /**
   * Everything or nothing. Takes the write lock at once: a transaction that begins by reading and then writes
   * could be refused by a neighbour in between, whatever the busy timeout says.
   */
  transaction<Result>(work: () => Result): Result
  /** Everything that is read in it is as of one moment; neighbours may write meanwhile. */
  snapshot<Result>(work: () => Result): Result
  /** False when the file was removed, or another one has its name now: what is written here is found by nobody. */
  isCurrent(): boolean
  /** Which file that is, whatever it is called by now. */
  readonly inode: number | undefined
  close(): void
}

/** The file is of a later version of the program than this one. */
export class NewerFormat extends Error {
  override readonly name = 'NewerFormat'
}

export interface DatabaseOptions {
  readonly path: string
  /** Whole scripts; number n brings the file from version n to n+1. They never change once released. */
  readonly migrations: readonly string[]
  /** How long a statement waits for a neighbour's write lock. */
  readonly busyTimeoutMs?: number
  /**
   * `FULL`: what was committed outlives a power failure. `OFF`: the system is never waited for; a crash of a process
   * harms nothing, a power failure may damage the file.
   */
  readonly synchronous?: 'FULL' | 'OFF'
  /**
   * After how many pages what was written goes from the log into the file. A log that nobody has open is read as a whole by
   * the next who opens the file, so processes that live shortly want a short one, and a service a long one.
   */
  readonly logPages?: number
}

/** Throws `NewerFormat`, or the database's own error when the file is damaged or cannot be made. */
export function openDatabase({
  path,
  migrations,
  busyTimeoutMs = BUSY_TIMEOUT_MS,
  synchronous = 'FULL',
  logPages = SHORT_LOG_PAGES,
}: DatabaseOptions): OpenDatabase {
  createPrivately(path)
  const inode = inodeOf(path)
  const database = new Database(path)
  try {
    // libsql waits for nobody by default, and -wal and -shm take the mode of the file itself.
    database.exec(`PRAGMA busy_timeout = ${Math.round(busyTimeoutMs)}`)
    becomeWal(database, busyTimeoutMs)
    database.exec(
      `PRAGMA synchronous = ${synchronous}; PRAGMA foreign_keys = ON; PRAGMA wal_autocheckpoint = ${logPages}`,
    )
    const open = wrap(database, path, inode)
    migrate(open, database, migrations)
    return open
  } catch (error) {
    database.close()
    throw error
  }
}

/** How long a neighbour is waited for where nothing else is said. */
const BUSY_TIMEOUT_MS = 10_000
const BUSY_PAUSE_MS = 5
/** The same for whoever only looks. */
const READONLY_BUSY_TIMEOUT_MS = 200
/** With a thousand pages, SQLite's own choice, opening a file takes two thirds longer. */
const SHORT_LOG_PAGES = 64

/**
 * A new file becomes a WAL file by a lock that SQLite does not wait for, whatever the busy timeout says: of several
 * processes that start at once, all but one are turned away. So it is asked again here; a file that is one already
 * answers at once.
 */
function becomeWal(database: Database.Database, patienceMs: number): void {
  for (let waitedMs = 0; ; waitedMs += BUSY_PAUSE_MS) {
    try {
      database.exec('PRAGMA journal_mode = WAL')
      return
    } catch (error) {
      if (errorCode(error) !== 'SQLITE_BUSY' || waitedMs > patienceMs) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BUSY_PAUSE_MS)
    }
  }
}

/**
 * A new database, whole in its one file, and held by nobody when it returns. Not so `openDatabase`: its statements, and
 * with them its locks and its log, last until the garbage collector comes, whatever `close` says.
 */
export function createDatabase({ path, migrations }: DatabaseOptions): void {
  createPrivately(path)
  const database = new Database(path)
  try {
    database.exec(`BEGIN; ${migrations.join(';')}; PRAGMA user_version = ${migrations.length}; COMMIT`)
  } finally {
    database.close()
  }
}

function createPrivately(path: string): void {
  makeFolders(dirname(path), 0o700)
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
}

const WRITES = /^\s*(WITH\b.*\b)?(INSERT|UPDATE|DELETE|REPLACE)\b/is

interface Prepared {
  readonly statement: Database.Statement
  readonly writes: boolean
}

function wrap(database: Database.Database, path: string, inode: number | undefined): OpenDatabase {
  const statements = new Map<string, Prepared>()
  const prepare = (sql: string): Prepared => {
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
      exec('ROLLBACK')
      throw error
    }
  }

  const transaction = <Result>(work: () => Result): Result => inTransaction('BEGIN IMMEDIATE', work)

  /**
   * A write by itself takes the lock first too. SQLite leaves a statement that was refused the lock (SQLITE_BUSY) in the
   * middle, libsql does not put it back, and while it stands there nothing that this connection writes is committed:
   * seen here, with answers that said it was. A refused BEGIN leaves nothing behind.
   */
  function perform<Result>(sql: string, work: (statement: Database.Statement) => Result): Result {
    const { statement, writes } = prepare(sql)
    return writes && !database.inTransaction ? transaction(() => work(statement)) : work(statement)
  }

  return {
    // Values as a list: a single null would be taken for an object of named ones.
    run: (sql, ...values) => perform(sql, (statement) => ({ changes: statement.run(values).changes })),
    get: (sql, ...values) => perform(sql, (statement) => statement.get(values) as Row | undefined),
    all: (sql, ...values) => perform(sql, (statement) => statement.all(values) as Row[]),
    transaction,
    snapshot: (work) => inTransaction('BEGIN', work),
    isCurrent: () => inodeOf(path) === inode,
    inode,
    close: () => {
      statements.clear()
      database.close()
    },
  }
}

function migrate(open: OpenDatabase, database: Database.Database, migrations: readonly string[]): void {
  const version = () => Number(open.get('PRAGMA user_version')?.user_version ?? 0)
  if (version() === migrations.length) return
  open.transaction(() => {
    // Asked again under the lock: a neighbour that started at the same time may have done the work.
    const from = version()
    if (from > migrations.length)
      throw new NewerFormat(`format ${from}, this version knows formats up to ${migrations.length}`)
    for (const script of migrations.slice(from)) database.exec(script)
    database.exec(`PRAGMA user_version = ${migrations.length}`)
  })
}

/**
 * Work that one process at a time does. The lock is one that the operating system holds on an empty file, which stays: it
 * goes with the process, however that ends.
 */
export function exclusively<Result>(path: string, patienceMs = BUSY_TIMEOUT_MS, work: () => Result): Result {
  createPrivately(path)
  const database = new Database(path)
  try {
    database.exec(`PRAGMA busy_timeout = ${Math.round(patienceMs)}`)
    database.exec('BEGIN EXCLUSIVE')
    try {
      return work()
    } finally {
      database.exec('ROLLBACK')
    }
  } finally {
    database.close()
  }
}

/** The file and what has been written to it but not into it. */
export const sizeOfDatabase = (path: string): number =>
  [path, `${path}-wal`].reduce((sum, each) => sum + (statSync(each, { throwIfNoEntry: false })?.size ?? 0), 0)

/** What tells a file from another one that gets its name; undefined where there is none. */
export const inodeOf = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.ino

/**
 * The rows of one query, of a file that is opened to be read alone: it is neither made nor migrated, and nobody is waited
 * for longer than a person who presses a key notices. Throws whatever stands in the way.
 */
export function readRows(path: string, sql: string, ...values: readonly Value[]): readonly Row[] {
  const database = new Database(`${pathToFileURL(path).href}?mode=ro`)
  try {
    // A neighbour that ends tidies up, and holds the file for a moment.
    database.exec(`PRAGMA busy_timeout = ${READONLY_BUSY_TIMEOUT_MS}`)
    return database.prepare(sql).all(values) as Row[]
  } finally {
    database.close()
  }
}

export interface Inspection {
  /** The number of migrations that it went through; 0 when it cannot be told. */
  readonly version: number
  /** `ok`, or what is wrong with it. */
  readonly integrity: string
}

/** Looks a file through without writing to it, without waiting long, and without setting anything aside. */
export function inspectDatabase(path: string): Inspection {
  try {
    const database = new Database(path)
    try {
      database.exec('PRAGMA busy_timeout = 2000')
      const [found] = database.prepare('PRAGMA user_version').all() as { user_version: number }[]
      const rows = database.prepare('PRAGMA integrity_check').all() as { integrity_check: string }[]
      return {
        version: found?.user_version ?? 0,
        integrity: rows.map(({ integrity_check }) => integrity_check).join('; '),
      }
    } finally {
      database.close()
    }
  } catch (error) {
    return { version: 0, integrity: messageOf(error) }
  }
}
