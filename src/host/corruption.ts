/**
 * Recovery from a corrupt database that several processes use: one of them quarantines the file under another name,
 * and all continue with a new one. Nothing is deleted, since parts of the file may still be readable.
 */
import { copyFileSync, linkSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { RushesError } from '../errors.js'
import {
  createDatabase,
  createIfMissing,
  type DatabaseOptions,
  type OpenDatabase,
  openDatabase,
} from './database.js'
import {
  exclusively,
  inodeOf,
  isEmpty,
  LOGS,
  moveIfThere,
  quarantineForeignLog,
  quarantineName,
  withDatabase,
} from './database-file.js'
import { describeReason, errorCode } from './system-error.js'

interface QuarantineOptions extends DatabaseOptions {
  /** SQL for the new file that replaces a corrupt or removed one. */
  replacementRows?(): string
}

/** A file was renamed from `from` to `to`: the database, or a log that does not belong to it. */
export type OnQuarantine = (to: string, from: string) => void

/** Damage that SQLite itself does not report. */
class CorruptFile extends Error {
  override readonly name = 'CorruptFile'
  readonly code = 'SQLITE_CORRUPT'
}

export const isCorruption = (error: unknown): boolean =>
  /^SQLITE_(CORRUPT|NOTADB)/.test(errorCode(error) ?? '')

/** Errors of a file that another process is quarantining at this moment. */
const isBeingReplaced = (error: unknown): boolean =>
  /^(SQLITE_(IOERR|CANTOPEN|READONLY_DBMOVED)|ENOENT$)/.test(errorCode(error) ?? '')

/** A file that changes this often while it is opened is not being quarantined: give up. */
const MAX_ATTEMPTS = 5

/** Quarantines a corrupt file first. */
export function openOrQuarantine(options: QuarantineOptions, onQuarantine: OnQuarantine): OpenDatabase {
  for (let attempt = 1; ; attempt++) {
    const found = inodeOf(options.path)
    try {
      if (found !== undefined) checkFile(options, onQuarantine)
      const open = openDatabase(options)
      checkLength(open, options.path)
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

/** Opens the file again that this process used until it was removed or replaced. */
export function reopenOrQuarantine(options: QuarantineOptions, onQuarantine: OnQuarantine): OpenDatabase {
  createIfMissing(options, options.replacementRows?.())
  return openOrQuarantine(options, onQuarantine)
}

/**
 * What can be seen of a file without opening it as a database. Files are created whole, so an empty one lost its
 * content.
 */
function checkFile({ path, journalMode }: DatabaseOptions, onQuarantine: OnQuarantine): void {
  const reason = reasonCorrupt(path)
  if (reason !== undefined) throw new CorruptFile(reason)
  if (journalMode === 'TRUNCATE') {
    const to = quarantineForeignLog(path)
    if (to !== undefined) onQuarantine(to, `${path}-wal`)
  }
}

/** Undefined when SQLite must tell. */
function reasonCorrupt(path: string): string | undefined {
  const file = statSync(path, { throwIfNoEntry: false })
  return file !== undefined && isEmpty(file) ? 'the file is empty' : undefined
}

/**
 * SQLite notices missing pages, but not that a part of the last one is missing: it reads zeros there, and rows are
 * gone. The transaction keeps writers away meanwhile.
 */
function checkLength(open: OpenDatabase, path: string): void {
  open.snapshot(() => {
    const pageBytes = Number(open.get('PRAGMA page_size')?.page_size)
    open.get('SELECT 1 FROM sqlite_schema')
    const bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0
    if (bytes % pageBytes !== 0) throw new CorruptFile('the end of the file is missing')
  })
}

/**
 * Renames the file with inode `found`, and puts a new database in its place. Does nothing when another process has
 * replaced the file already.
 *
 * SQLite finds the log (-journal, -wal, -shm) by the name of the database, so a process that opens the file at the
 * wrong moment could combine the new file with the old log. So the old log is moved first, and the new file then
 * replaces the old one in one step.
 */
export function quarantine(
  options: QuarantineOptions,
  found: number | undefined,
  onQuarantine: OnQuarantine,
): void {
  const { path } = options
  const to = quarantineName(path)
  const isOurs = whileReplacing(options, () => {
    if (found === undefined || inodeOf(path) !== found) return false
    const fresh = `${path}.new`
    removeAll(fresh)
    createDatabase({ ...options, path: fresh }, options.replacementRows?.())
    addName(path, to)
    for (const ending of LOGS) moveIfThere(path + ending, to + ending)
    renameSync(fresh, path)
    return true
  })
  if (isOurs) onQuarantine(to, path)
}

/** Whether the file with this inode is gone from `path`, and no process quarantined it. */
export function wasRemoved(path: string, inode: number | undefined): boolean {
  const found = inodeOf(path)
  if (found === undefined || found === inode) return found === undefined
  const start = `${basename(path)}.damaged-`
  return !readdirSync(dirname(path)).some(
    (name) => name.startsWith(start) && inodeOf(join(dirname(path), name)) === inode,
  )
}

/** Waits for a process that may be quarantining the file; whether the file was replaced. */
function isReplaced(options: DatabaseOptions, found: number | undefined): boolean {
  try {
    return whileReplacing(options, () => inodeOf(options.path) !== found)
  } catch {
    // Without a lock no process can quarantine: report the first error.
    return false
  }
}

const whileReplacing = <Result>({ path, busyTimeoutMs }: DatabaseOptions, work: () => Result): Result =>
  exclusively(`${path}.lock`, busyTimeoutMs, work)

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

const INSPECT_TIMEOUT_MS = 2_000

interface Inspection {
  /** The number of migrations that were applied; 0 when it cannot be read. */
  readonly version: number
  /** `ok`, or the damage. */
  readonly integrity: string
}

/** Checks a file without writing to it. */
export function inspectDatabase(path: string): Inspection {
  const reason = reasonCorrupt(path)
  if (reason !== undefined) return { version: 0, integrity: reason }
  try {
    return withDatabase(path, INSPECT_TIMEOUT_MS, (database) => {
      const [found] = database.prepare('PRAGMA user_version').all() as { user_version: number }[]
      const rows = database.prepare('PRAGMA integrity_check').all() as { integrity_check: string }[]
      return {
        version: found?.user_version ?? 0,
        integrity: rows.map(({ integrity_check }) => integrity_check).join('; '),
      }
    })
  } catch (error) {
    // The SQLite package cannot be loaded.
    if (error instanceof RushesError) throw error
    return { version: 0, integrity: describeReason(error) }
  }
}
