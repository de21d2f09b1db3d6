/**
 * Databases that turn out to be damaged, among processes that use them at the same time: one sets the file aside, and
 * all go on with the one that takes its place. Nothing is deleted, since somebody may still get something out of it.
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

/** SQLite's words for a file that is not, or not any more, a database that it can read. */
export const isCorruption = (error: unknown): boolean =>
  /^SQLITE_(CORRUPT|NOTADB)/.test(errorCode(error) ?? '')

/** So a file also looks that is being set aside at this moment. */
const isBeingReplaced = (error: unknown): boolean =>
  /^(SQLITE_(IOERR|CANTOPEN|READONLY_DBMOVED)|ENOENT$)/.test(errorCode(error) ?? '')

/** Files that are taken away as often while they are opened are taken away by no neighbour that mends. */
const MAX_ATTEMPTS = 5

/** Opens, with a damaged file first set aside. `onSetAside` is told the name that it has now. */
export function openOrQuarantine(
  options: DatabaseOptions,
  onSetAside: (aside: string) => void,
): OpenDatabase {
  for (let attempt = 1; ; attempt++) {
    const found = inodeOf(options.path)
    try {
      const open = openDatabase(options)
      if (open.isCurrent() || attempt === MAX_ATTEMPTS) return open
      open.close()
    } catch (error) {
      if (attempt === MAX_ATTEMPTS) throw error
      if (isCorruption(error)) quarantine(options, found, onSetAside)
      // Whoever has the old file and the new log can be told anything: what counts is whether it is the old one.
      else if (!(inodeOf(options.path) !== found || (isBeingReplaced(error) && isReplaced(options, found))))
        throw error
    }
  }
}

/**
 * Gives the file `found` another name, which `onSetAside` is told, and its own name to a new database. Nothing is done when
 * it is not there any more, because a neighbour was first.
 *
 * SQLite finds what belongs to a database (-wal, -shm) by its name, so whoever opens at the wrong moment could join
 * the new file to the log of the old one. Therefore there is always a whole file under the name, the new one takes it
 * in one step, and the log goes before.
 */
export function quarantine(
  options: DatabaseOptions,
  found: number | undefined,
  onSetAside: (aside: string) => void,
): void {
  const { path } = options
  const aside = `${path}.damaged-${new Date().toISOString().replace(/[^0-9TZ]/g, '')}-${process.pid}`
  const isOurs = whileReplacing(options, () => {
    if (found === undefined || inodeOf(path) !== found) return false
    const fresh = `${path}.new`
    removeAll(fresh)
    createDatabase({ ...options, path: fresh })
    addName(path, aside)
    for (const ending of LOGS) moveIfThere(path + ending, aside + ending)
    renameSync(fresh, path)
    return true
  })
  if (isOurs) onSetAside(aside)
}

/** Waits for a neighbour that may be mending; whether the file is another one now. */
function isReplaced(options: DatabaseOptions, found: number | undefined): boolean {
  try {
    return whileReplacing(options, () => inodeOf(options.path) !== found)
  } catch {
    // Where there can be no lock nobody mends; what went wrong first is what is to be told.
    return false
  }
}

const whileReplacing = <Result>({ path, busyTimeoutMs }: DatabaseOptions, work: () => Result): Result =>
  exclusively(`${path}.mending`, busyTimeoutMs, work)

const LOGS = ['-wal', '-shm'] as const

function removeAll(path: string): void {
  for (const each of ['', ...LOGS]) rmSync(path + each, { force: true })
}

/** A second name; a copy where the file system knows no second names. */
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
