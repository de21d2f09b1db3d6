/**
 * Recovery from a corrupt database that several processes use: one of them quarantines the file under another name, and all
 * continue with a new one. Nothing is deleted, since parts of the file may still be readable.
 */
import { copyFileSync, linkSync, renameSync, rmSync } from 'node:fs'
import {
  createDatabase,
  type DatabaseOptions,
  exclusively,
  inodeOf,
  type OpenDatabase,
  openDatabase,
} from './database.js'
import { errorCode } from './directories.js'

export const isCorruption = (error: unknown): boolean =>
  /^SQLITE_(CORRUPT|NOTADB)/.test(errorCode(error) ?? '')

/** Errors of a file that another process is quarantining at this moment. */
const isBeingReplaced = (error: unknown): boolean =>
  /^(SQLITE_(IOERR|CANTOPEN|READONLY_DBMOVED)|ENOENT$)/.test(errorCode(error) ?? '')

/** A file that changes this often while it is opened is not being quarantined: give up. */
const MAX_ATTEMPTS = 5

/** Quarantines a corrupt file first; `onQuarantine` gets its new name. */
export function openOrQuarantine(
  options: DatabaseOptions,
  onQuarantine: (quarantined: string) => void,
): OpenDatabase {
  for (let attempt = 1; ; attempt++) {
    const found = inodeOf(options.path)
    try {
      const open = openDatabase(options)
      if (open.isCurrent() || attempt === MAX_ATTEMPTS) return open
      open.close()
    } catch (error) {
      if (attempt === MAX_ATTEMPTS) throw error
      if (isCorruption(error)) quarantine(options, found, onQuarantine)
      // With an old file and a new log any error is possible: try again if the file was replaced meanwhile.
      else if (!(inodeOf(options.path) !== found || (isBeingReplaced(error) && isReplaced(options, found))))
        throw error
    }
  }
}

/**
 * Renames the file with inode `found`, tells `onQuarantine` the new name, and puts a new database in its place. Does nothing
 * when another process has replaced the file already.
 *
 * SQLite finds the log (-wal, -shm) by the name of the database, so a process that opens the file at the wrong moment could
 * combine the new file with the old log. So the old log is moved first, and the new file then replaces the old one in one
 * step.
 */
export function quarantine(
  options: DatabaseOptions,
  found: number | undefined,
  onQuarantine: (quarantined: string) => void,
): void {
  const { path } = options
  const quarantined = `${path}.damaged-${new Date().toISOString().replace(/[^0-9TZ]/g, '')}-${process.pid}`
  const isOurs = whileReplacing(options, () => {
    if (found === undefined || inodeOf(path) !== found) return false
    const fresh = `${path}.new`
    removeAll(fresh)
    createDatabase({ ...options, path: fresh })
    addName(path, quarantined)
    for (const ending of LOGS) moveIfThere(path + ending, quarantined + ending)
    renameSync(fresh, path)
    return true
  })
  if (isOurs) onQuarantine(quarantined)
}

/** Waits for a process that may be quarantining the file; whether the file was replaced. */
function isReplaced(options: DatabaseOptions, found: number | undefined): boolean {
  try {
    return whileReplacing(options, () => inodeOf(options.path) !== found)
  } catch {
    // Without a lock nobody can quarantine: report the first error.
    return false
  }
}

const whileReplacing = <Result>({ path, busyTimeoutMs }: DatabaseOptions, work: () => Result): Result =>
  exclusively(`${path}.mending`, busyTimeoutMs, work)

const LOGS = ['-wal', '-shm'] as const

function removeAll(path: string): void {
  for (const each of ['', ...LOGS]) rmSync(path + each, { force: true })
}

/** A hard link, or a copy where the file system has no links. */
function addName(path: string, name: string): void {
  try {
    linkSync(path, name)
  } catch {
    copyFileSync(path, name)
  }
}

function moveIfThere(from: string, to: string): void {
  try {
    renameSync(from, to)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
  }
}
