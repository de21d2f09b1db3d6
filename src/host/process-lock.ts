/**
 * Shows whether a process runs or has ended: a process holds an operating system's lock on an empty file, and the
 * system releases the lock however the process ends. A process id proves nothing: the system reuses ids, and two
 * containers that share a folder may have the same process ids, host name and boot.
 *
 * The locks are SQLite's and lie beside the databases, so they work on every file system where the databases work. No
 * other code may open a lock file: closing it would release all locks of this process on that file.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { connect, createPrivately, type SqliteConnection, sqliteUri, withDatabase } from './database.js'
import { errorCode } from './system-error.js'

/** Keeps the connections referenced: one that is collected as garbage closes its file, which releases the lock. */
const held = new Set<SqliteConnection>()

/** How long to wait for a process that tests this lock. */
const BUSY_MS = 100

/** Returns undefined if the lock cannot be taken: other processes then cannot tell whether this process runs. */
export function takeLock(path: string): SqliteConnection | undefined {
  let database: SqliteConnection | undefined
  try {
    createPrivately(path)
    database = connect(path)
    // Nothing is written, so SQLite needs no journal file.
    database.exec(`PRAGMA busy_timeout = ${BUSY_MS}; PRAGMA journal_mode = OFF; BEGIN EXCLUSIVE`)
    held.add(database)
    return database
  } catch {
    database?.close()
    // An unlocked file would show that this process has ended.
    removeLock(path)
    return undefined
  }
}

/** Returns whether a process holds the lock, or undefined if that is unknown: the file is missing or unreadable. */
export function isLocked(path: string): boolean | undefined {
  if (!existsSync(path)) return undefined
  try {
    // Read-only, so that a file that its process has just removed is not created again.
    withDatabase(sqliteUri(path, 'ro'), 0, (database) => database.exec('SELECT 1 FROM sqlite_schema'))
    return false
  } catch (error) {
    return errorCode(error) === 'SQLITE_BUSY' ? true : undefined
  }
}

/** Ignores errors. */
function removeLock(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {
    // The file is empty, and the next call tries again.
  }
}

const isLockName = (name: string): boolean => /^[0-9a-f]{16}$/.test(name)

/** Returns the folder of the lock files, inside the folder of the databases. */
const locksFolder = (folder: string): string => join(folder, 'processes')

const lockPath = (folder: string, id: string): string => join(locksFolder(folder), id)

/** The lock of this process, named in the records that it writes. */
export class ProcessLock {
  readonly #folder: string
  #id: string | undefined
  #connection: SqliteConnection | undefined

  /** `folder`: of the databases. */
  constructor(folder: string) {
    this.#folder = folder
  }

  /** 16 hexadecimal digits. The first read takes the lock. */
  get id(): string {
    if (this.#id === undefined) {
      // A process without a lock has an id too, but other processes cannot tell whether it runs.
      this.#id = randomBytes(8).toString('hex')
      this.#connection = takeLock(lockPath(this.#folder, this.#id))
      removeOldLocks(locksFolder(this.#folder))
    }
    return this.#id
  }

  /**
   * Ends the lock. `isNamed`: some records still contain the id, so the file is kept and shows that the process has
   * ended.
   */
  end(isNamed = false): void {
    if (this.#id === undefined) return
    if (this.#connection !== undefined) {
      held.delete(this.#connection)
      this.#connection.close()
    }
    if (!isNamed) removeLock(lockPath(this.#folder, this.#id))
    this.#id = undefined
    this.#connection = undefined
  }
}

/** If no lock shows the state of a process, it is assumed to run until it has shown no sign for this long. */
const UNSEEN_MS = 300_000

/**
 * Minimum age of a lock that is removed. The file is as old as its process; once it is removed, records of the process
 * count by their last sign.
 */
const OLD_MS = 86_400_000

/** Removes the old locks of ended processes. Other files in the folder are not ours. */
function removeOldLocks(folder: string): void {
  try {
    for (const name of readdirSync(folder).filter(isLockName)) {
      const path = join(folder, name)
      const ageMs = Math.abs(Date.now() - statSync(path).mtimeMs)
      if (ageMs > OLD_MS && isLocked(path) === false) removeLock(path)
    }
  } catch {
    // Another process has removed a file. The next call continues.
  }
}

/** Returns whether the process with this id runs, or undefined if its lock does not show it. */
export const isRunning = (folder: string, id: string): boolean | undefined =>
  isLockName(id) ? isLocked(lockPath(folder, id)) : undefined

/**
 * Returns a test of the ids in records that reads each lock only once. Use it for one operation only, because the answers are
 * cached. If a lock does not show the state, or the record is of an earlier version, `silentMs` decides: the time since the last
 * sign of the process. A value far below 0 means that the clock was set back, so the process counts as ended.
 */
export function runningIn(folder: string): (id: unknown, silentMs: number) => boolean {
  const cached = new Map<unknown, boolean | undefined>()
  return (id, silentMs) => {
    if (!cached.has(id)) cached.set(id, isRunning(folder, String(id).replace(/^@/, '')))
    return cached.get(id) ?? Math.abs(silentMs) < UNSEEN_MS
  }
}
