/**
 * Recovery from a corrupt database that several processes use: one process quarantines the file under another name, and
 * all processes continue with a new file. Nothing is deleted, because parts of the file may still be readable.
 */
import { copyFileSync, existsSync, linkSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { createDatabase, type DatabaseOptions, type OpenDatabase, openDatabase } from './database.js'
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
import { type FileSystem, systemFiles } from './file-system.js'
import { describeReason, errorCode } from './system-error.js'

interface QuarantineOptions extends DatabaseOptions {
  /** Returns SQL for the new file that replaces a corrupt or removed one. */
  replacementRows?(): string
  /** For tests. */
  readonly fileSystem?: Pick<FileSystem, 'replacesOpenFiles'>
  /** For tests. */
  readonly renameFile?: typeof renameSync
}

/** Called when a file was renamed from `from` to `to`: the database, or a log that does not belong to it. */
export type OnQuarantine = (to: string, from: string) => void

/** Corruption that SQLite itself does not report. */
class CorruptFile extends Error {
  override readonly name = 'CorruptFile'
  readonly code = 'SQLITE_CORRUPT'
}

export const isCorruption = (error: unknown): boolean =>
  /^SQLITE_(CORRUPT|NOTADB)/.test(errorCode(error) ?? '')

/** Whether the error can come from a file that another process is quarantining. */
const isBeingReplaced = (error: unknown): boolean =>
  /^(SQLITE_(IOERR|CANTOPEN|READONLY_DBMOVED)|ENOENT$)/.test(errorCode(error) ?? '')

/** Maximum number of attempts to open a file. One that changes more often is not being quarantined. */
const MAX_ATTEMPTS = 5

/** Opens a database; quarantines a corrupt file first. */
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
      // A combination of an old file and a new log can cause any error: retry if the file was replaced during this
      // attempt.
      else if (!(inodeOf(options.path) !== found || (isBeingReplaced(error) && isReplaced(options, found))))
        throw error
    }
  }
}

/**
 * Checks a file without opening it as a database. Files are created with their content, so an empty file has lost it.
 */
function checkFile({ path, journalMode }: DatabaseOptions, onQuarantine: OnQuarantine): void {
  const reason = reasonCorrupt(path)
  if (reason !== undefined) throw new CorruptFile(reason)
  if (journalMode === 'TRUNCATE') {
    const to = quarantineForeignLog(path)
    if (to !== undefined) onQuarantine(to, `${path}-wal`)
  }
}

/** Returns why the file is corrupt; undefined if only SQLite can find out. */
function reasonCorrupt(path: string): string | undefined {
  const file = statSync(path, { throwIfNoEntry: false })
  return file !== undefined && isEmpty(file) ? 'the file is empty' : undefined
}

/**
 * Checks that the file has all its pages. SQLite reads zeros where a part of the last page is missing, and rows are lost;
 * missing pages it notices only when it needs them. Pages may be in the log instead, which is not emptied during the
 * transaction.
 */
function checkLength(open: OpenDatabase, path: string): void {
  open.snapshot(() => {
    const pageBytes = Number(open.get('PRAGMA page_size')?.page_size)
    open.get('SELECT 1 FROM sqlite_schema')
    const pages = Number(open.get('PRAGMA page_count')?.page_count)
    const sizeOf = (name: string) => statSync(name, { throwIfNoEntry: false })?.size ?? 0
    const bytes = sizeOf(path)
    if (bytes % pageBytes !== 0 || (sizeOf(`${path}-wal`) === 0 && bytes < pages * pageBytes))
      throw new CorruptFile('the end of the file is missing')
  })
}

/**
 * Renames the file with inode `found`, and replaces it with a new database. Does nothing if another process has already
 * replaced it.
 *
 * SQLite finds the logs (-journal, -wal, -shm) by the name of the database, so a process that opens the file at the
 * wrong moment could combine the new file with the old log. To prevent that, the old log is moved first; then the new
 * file replaces the old one in one step.
 */
export function quarantine(
  options: QuarantineOptions,
  found: bigint | undefined,
  onQuarantine: OnQuarantine,
): void {
  const { path } = options
  const to = quarantineName(path)
  const hasReplaced = whileReplacing(options, () => {
    if (found === undefined || inodeOf(path) !== found) return false
    const fresh = `${path}.new`
    removeAll(fresh)
    createDatabase({ ...options, path: fresh }, options.replacementRows?.())
    try {
      for (const ending of LOGS) moveIfThere(path + ending, to + ending)
      replaceBy(fresh, to, options)
    } catch (error) {
      // The next attempt starts from the same files.
      for (const ending of LOGS) moveIfThere(to + ending, path + ending)
      throw HELD.has(errorCode(error) ?? '') ? new HeldFile(error) : error
    } finally {
      removeAll(fresh)
    }
    return true
  })
  if (hasReplaced) onQuarantine(to, path)
}

function replaceBy(
  fresh: string,
  to: string,
  { path, fileSystem = systemFiles, renameFile = renameSync }: QuarantineOptions,
): void {
  const { replacesOpenFiles } = fileSystem
  if (replacesOpenFiles) addName(path, to)
  // Fails before anything has changed while SQLite has the file open in another process.
  else renameFile(path, to)
  try {
    if (replacesOpenFiles || !existsSync(path)) renameFile(fresh, path)
  } catch (error) {
    if (replacesOpenFiles) rmSync(to, { force: true })
    // Another process may have created the new file in the meantime.
    else if (existsSync(path)) return
    else renameFile(to, path)
    throw error
  }
}

const HELD = new Set(['EPERM', 'EACCES', 'EBUSY'])

/** A corrupt file cannot be replaced, because another process has it open. */
export class HeldFile extends Error {
  override readonly name = 'HeldFile'
  constructor(cause: unknown) {
    super('the file is damaged, and another process uses it', { cause })
  }
}

/** Returns whether the file with this inode is missing from `path` although no process quarantined it. */
export function wasRemoved(path: string, inode: bigint | undefined): boolean {
  const found = inodeOf(path)
  if (found === undefined || found === inode) return found === undefined
  const start = `${basename(path)}.damaged-`
  return !readdirSync(dirname(path)).some(
    (name) => name.startsWith(start) && inodeOf(join(dirname(path), name)) === inode,
  )
}

/** Waits for a process that may be quarantining the file. Returns whether the file was replaced. */
function isReplaced(options: DatabaseOptions, found: bigint | undefined): boolean {
  try {
    return whileReplacing(options, () => inodeOf(options.path) !== found)
  } catch {
    // Without the lock, no process can quarantine the file: report the first error.
    return false
  }
}

const whileReplacing = <Result>({ path, busyTimeoutMs }: DatabaseOptions, work: () => Result): Result =>
  exclusively(`${path}.lock`, busyTimeoutMs, work)

function removeAll(path: string): void {
  for (const each of ['', ...LOGS]) rmSync(path + each, { force: true })
}

/** Creates a hard link, or a copy if the file system has no hard links. */
function addName(path: string, name: string): void {
  try {
    linkSync(path, name)
  } catch {
    copyFileSync(path, name)
  }
}

const INSPECT_TIMEOUT_MS = 2_000

interface Inspection {
  /** Number of applied migrations; 0 if it cannot be read. */
  readonly version: number
  /** `ok`, or the problems that were found. */
  readonly integrity: string
}

/**
 * Checks a file without writing to it. Throws the error of a file that cannot be read now, for example because it is
 * locked: that proves nothing about its content.
 */
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
    if (!isCorruption(error)) throw error
    return { version: 0, integrity: describeReason(error) }
  }
}
