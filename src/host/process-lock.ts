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

/** Throws the errors of the database. */
function takeLock(path: string): SqliteConnection {
  createPrivately(path)
  const database = connect(path)
  // Nothing is written, so SQLite needs no journal file.
  database.exec(`PRAGMA busy_timeout = ${BUSY_MS}; PRAGMA journal_mode = OFF; BEGIN EXCLUSIVE`)
  held.add(database)
  return database
}

function isLocked(path: string): boolean {
  if (!existsSync(path)) return false
  try {
    // Read-only, so that a file that its process has just removed is not created again.
    withDatabase(sqliteUri(path, 'ro'), 0, (database) => database.exec('SELECT 1 FROM sqlite_schema'))
    return false
  } catch (error) {
    return errorCode(error) === 'SQLITE_BUSY'
  }
}

const isLockName = (name: string): boolean => /^[0-9a-f]{16}$/.test(name)

/** Returns the folder of the lock files, inside the folder of the databases. */
const locksFolder = (folder: string): string => join(folder, 'processes')

const lockPath = (folder: string, id: string): string => join(locksFolder(folder), id)

/** The lock of this process, named in the records that it writes. */
export class ProcessLock {
  readonly #folder: string
  #held: { readonly id: string; readonly connection: SqliteConnection } | undefined

  /** `folder`: of the databases. */
  constructor(folder: string) {
    this.#folder = folder
  }

  /** 16 hexadecimal digits. The first read takes the lock. Throws the errors of the database. */
  get id(): string {
    if (this.#held === undefined) {
      const id = randomBytes(8).toString('hex')
      this.#held = { id, connection: takeLock(lockPath(this.#folder, id)) }
      removeOldLocks(locksFolder(this.#folder))
    }
    return this.#held.id
  }

  /** Ends the lock: its process counts as ended. */
  end(): void {
    if (this.#held === undefined) return
    const { id, connection } = this.#held
    held.delete(connection)
    connection.close()
    this.#held = undefined
    try {
      rmSync(lockPath(this.#folder, id), { force: true })
    } catch {
      // On Windows, another process may be looking at it. It shows that this process has ended, and is removed when it is old.
    }
  }
}

/** Minimum age of a file that is removed: a process may not have locked a new one yet. */
const OLD_MS = 86_400_000

/** Removes the locks that killed processes have left. Other files in the folder are not ours. */
function removeOldLocks(folder: string): void {
  try {
    for (const name of readdirSync(folder).filter(isLockName)) {
      const path = join(folder, name)
      if (Date.now() - statSync(path).mtimeMs > OLD_MS && !isLocked(path)) rmSync(path, { force: true })
    }
  } catch {
    // Another process has removed a file. The next call continues.
  }
}

/** Returns whether the process runs that has this id in a record. */
export const isRunning = (folder: string, id: unknown): boolean =>
  isLockName(String(id)) && isLocked(lockPath(folder, String(id)))
