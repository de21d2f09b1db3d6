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
import { isPosix } from './file-system.js'
import { errorCode } from './system-error.js'

interface HeldLock {
  /** Releases the lock and keeps the file, which then shows that the process has ended. */
  release(): void
  /** Removes the file. Call it when no record contains the id of the lock. */
  remove(): void
}

/** Keeps the connections referenced: one that is collected as garbage closes its file, which releases the lock. */
const held = new Set<SqliteConnection>()

/** How long to wait for a process that tests this lock. */
const BUSY_MS = 100

/** Returns undefined if the lock cannot be taken: other processes then cannot tell whether this process runs. */
export function takeLock(path: string): HeldLock | undefined {
  let database: SqliteConnection | undefined
  try {
    createPrivately(path)
    database = connect(path)
    // Nothing is written, so SQLite needs no journal file.
    database.exec(`PRAGMA busy_timeout = ${BUSY_MS}; PRAGMA journal_mode = OFF; BEGIN EXCLUSIVE`)
  } catch {
    database?.close()
    // An unlocked file would show that this process has ended.
    removeLock(path)
    return undefined
  }
  const connection = database
  held.add(connection)
  const release = () => {
    held.delete(connection)
    connection.close()
  }
  return {
    release,
    remove() {
      removeLock(path)
      release()
      // Windows cannot remove an open file.
      if (!isPosix) removeLock(path)
    },
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

/** Returns the folder of the lock files, inside the folder of the databases. */
const locksFolder = (folder: string): string => join(folder, 'processes')

/** The lock of this process, named in the records that it writes. */
export interface ProcessLock {
  /** 16 hexadecimal digits. The first read takes the lock. */
  readonly id: string
  /** The folder that was passed to `processLockIn`. */
  readonly folder: string
  /**
   * Ends the lock. `isNamed`: some records still contain the id, so the file is kept and shows that the process has
   * ended.
   */
  end(isNamed?: boolean): void
}

export function processLockIn(folder: string): ProcessLock {
  let id: string | undefined
  let lock: HeldLock | undefined
  return {
    folder,
    get id() {
      if (id === undefined) {
        // A process without a lock has an id too, but other processes cannot tell whether it runs.
        id = randomBytes(8).toString('hex')
        lock = takeLock(join(locksFolder(folder), id))
        removeOldLocks(locksFolder(folder))
      }
      return id
    },
    end(isNamed = false) {
      if (isNamed) lock?.release()
      else lock?.remove()
      id = undefined
      lock = undefined
    },
  }
}

/** If no lock shows the state of a process, it is assumed to run until it has shown no sign for this long. */
const UNSEEN_MS = 300_000

/**
 * Minimum age of a lock that is removed. The file is as old as its process; once it is removed, records of the process
 * count by their last sign.
 */
const OLD_MS = 86_400_000

const isLockName = (name: string): boolean => /^[0-9a-f]{16}$/.test(name)

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
  isLockName(id) ? isLocked(join(locksFolder(folder), id)) : undefined

/**
 * Returns a test that reads each lock only once. Use it for one operation only, because the answers are cached. If a
 * lock does not show the state (or `id` is undefined, in a record of an earlier version), `silentMs` decides: the time
 * since the last sign of the process. A value far below 0
 * means that the clock was set back, so the process counts as ended.
 */
export function runningIn(folder: string | undefined): (id: string | undefined, silentMs: number) => boolean {
  const cached = new Map<string, boolean | undefined>()
  return (id = '', silentMs) => {
    if (!cached.has(id)) cached.set(id, folder === undefined ? undefined : isRunning(folder, id))
    return cached.get(id) ?? Math.abs(silentMs) < UNSEEN_MS
  }
}

/**
 * Returns the form of the id in a record: `@` and the id. Earlier versions wrote start time and machine
 * (`4711@1f0e9a3c`). They read the new form as a process on another machine, and decide by the time since its last
 * sign.
 */
export const ownerText = (id: string): string => `@${id}`

/** Returns the id in a record; undefined if an earlier version wrote it. */
export const ownerOf = (text: unknown): string | undefined =>
  typeof text === 'string' ? /^@([0-9a-f]{16})$/.exec(text)?.[1] : undefined

/** Returns whether a process group has a member. A member that has ended counts until its parent reaps it. */
export function groupIsAlive(leader: number): boolean {
  try {
    return process.kill(-leader, 0)
  } catch {
    // The group has no members. macOS reports EPERM for a group of ended members.
    return false
  }
}
