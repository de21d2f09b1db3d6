/**
 * Low-level access to the file of an SQLite database: opening, locking, reading, its log files, and its identity. The
 * file may be removed, replaced or overwritten in place while it is open. So each new database has a random number in
 * its header (SQLite's application id). Give a copy made by `VACUUM INTO` a new number.
 */
import { randomInt } from 'node:crypto'
import {
  closeSync,
  copyFileSync,
  existsSync,
  fstatSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { pathToFileURL } from 'node:url'
import type Database from 'libsql'
import { messageOf, usageError } from '../errors.js'
import { makeFolders } from './directories.js'
import { errorCode } from './system-error.js'

export type Row = Readonly<Record<string, unknown>>
export type SqlValue = string | number | bigint | Uint8Array | null

export type SqliteConnection = Database.Database
export type SqliteStatement = Database.Statement

export const BUSY_TIMEOUT_MS = 10_000

const loadModule = createRequire(import.meta.url)

/**
 * Loads the native package on first use, so that commands which can work without a database do not fail without the
 * package.
 */
export function connect(path: string): Database.Database {
  let Driver: typeof Database
  try {
    Driver = loadModule('libsql')
  } catch (error) {
    const reason = messageOf(error).replace(/[.\s]*(\n.*)?$/s, '')
    throw usageError(
      `The SQLite package for this system (${process.platform}-${process.arch}) cannot be loaded: ${reason}.`,
      installHint(process.platform, process.arch, errorCode(error)),
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

/** Returns what to install. `code`: of the error. */
export function installHint(platform: string, arch: string, code: string | undefined): string {
  if (platform === 'win32' && arch === 'arm64')
    return 'On Windows for ARM, install the x64 version of Node.js, and rushes with its npm.'
  if (platform === 'win32' && code === 'ERR_DLOPEN_FAILED')
    return 'Install the Microsoft Visual C++ Redistributable for x64 (VCRUNTIME140.dll), then run the command again.'
  return 'Install rushes again on this machine, without --omit=optional: `npm install -g rushes`.'
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
  work: (database: Database.Database) => Result,
): Result {
  const database = connect(path)
  try {
    database.exec(`PRAGMA busy_timeout = ${Math.round(busyTimeoutMs)}`)
    return work(database)
  } finally {
    database.close()
  }
}

/** Returns the size in bytes, including the write-ahead log. */
export const sizeOfDatabase = (path: string): number =>
  [path, `${path}-wal`].reduce((sum, each) => sum + (statSync(each, { throwIfNoEntry: false })?.size ?? 0), 0)

/** Creates the file with mode 0600, which -wal and -shm inherit; libsql would create it with 0644. */
export function createPrivately(path: string): void {
  makeFolders(dirname(path), 0o700)
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
}

/** Rolls back, and ignores the error if no transaction is active: SQLite itself rolls back if the disk is full. */
export function rollBack(database: Database.Database): void {
  try {
    database.exec('ROLLBACK')
  } catch {
    // SQLite has already rolled back.
  }
}

/**
 * Runs `work` in one process at a time. SQLite holds an operating system's lock on an empty file; the system releases
 * it however the process ends.
 */
export function exclusively<Result>(
  path: string,
  busyTimeoutMs = BUSY_TIMEOUT_MS,
  work: () => Result,
): Result {
  createPrivately(path)
  return withDatabase(path, busyTimeoutMs, (database) => {
    database.exec('BEGIN EXCLUSIVE')
    try {
      return work()
    } finally {
      rollBack(database)
    }
  })
}

/**
 * Returns the inode, which distinguishes a file from its replacement; undefined if the file is missing. A bigint, because
 * Windows has inodes above 2^53.
 */
export const inodeOf = (path: string): bigint | undefined =>
  statSync(path, { bigint: true, throwIfNoEntry: false })?.ino

/** SQLite also treats a file of one byte as empty. */
export const isEmpty = ({ size }: { readonly size: number | bigint }): boolean => size <= 1

/** Endings of the log files, which SQLite finds only by the name of the database. */
export const LOGS = ['-journal', '-wal', '-shm'] as const

/** Returns the new name for a file that cannot be used. */
export const quarantineName = (path: string): string =>
  `${path}.damaged-${new Date().toISOString().replace(/[^0-9TZ]/g, '')}-${process.pid}`

export function moveIfThere(from: string, to: string): void {
  try {
    if (statSync(from).size === 0) rmSync(from)
    else renameSync(from, to)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
  }
}

/**
 * Renames a log (-wal) that belongs to another database, and returns its new name. SQLite would read a log beside a
 * file that is not in WAL mode, such as a restored backup. Returns undefined if no such log exists.
 */
export function quarantineForeignLog(path: string): string | undefined {
  const log = `${path}-wal`
  // Check the log first: a file is in WAL mode before it has a log.
  if (!existsSync(log) || isInWalMode(path)) return undefined
  const to = quarantineName(log)
  moveIfThere(log, to)
  rmSync(`${path}-shm`, { force: true })
  return to
}

/**
 * Empties the log of a file that was overwritten, so that SQLite does not write the log into the other database on
 * close. Keeps a copy.
 */
export function setAsideLog(path: string): void {
  const log = `${path}-wal`
  if ((statSync(log, { throwIfNoEntry: false })?.size ?? 0) > 0) {
    try {
      copyFileSync(log, quarantineName(log))
    } finally {
      truncateSync(log)
    }
  }
}

/** The first 16 bytes of every SQLite database. */
const MAGIC = Buffer.from('SQLite format 3\0')
const WAL_OFFSET = 18
const ID_OFFSET = 68
const HEADER_BYTES = 72

/**
 * Open descriptors by device and inode. They are never closed: when a process closes any descriptor of a file, the
 * system releases all locks of that process on the file, including SQLite's.
 */
const descriptors = new Map<string, number>()

function descriptorOf(path: string): number {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false })
  const known = found && descriptors.get(`${found.dev}:${found.ino}`)
  if (known !== undefined) return known
  const descriptor = openSync(path, 'r')
  const { dev, ino } = fstatSync(descriptor, { bigint: true })
  descriptors.set(`${dev}:${ino}`, descriptor)
  return descriptor
}

function readHeader(descriptor: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES)
  readSync(descriptor, header, 0, HEADER_BYTES, 0)
  return header
}

/** Returns whether the header says that the database uses a write-ahead log. */
const isInWalMode = (path: string): boolean => readHeader(descriptorOf(path))[WAL_OFFSET] !== 1

/** Returns SQL that gives the database a new random number. */
export const newApplicationId = (): string => `PRAGMA application_id = ${randomInt(1, 2 ** 31)}`

export interface FileIdentity {
  /**
   * Returns false if the file was removed, emptied, replaced or overwritten: writes to it are lost. Takes a few
   * microseconds.
   */
  isCurrent(): boolean
  /** Returns whether the path now has another file or no file. */
  wasMoved(): boolean
}

/** Remembers the identity of the file at `path` with this inode. */
export function identifyFile(path: string, inode: bigint | undefined): FileIdentity {
  const descriptor = descriptorOf(path)
  const header = () => readHeader(descriptor)
  /**
   * Random number in the header. 0 in a database of an earlier version, until a migration is written to the main file.
   */
  let id = header().readInt32BE(ID_OFFSET)

  function hasItsHeader(): boolean {
    const found = header()
    if (found.compare(MAGIC, 0, MAGIC.length, 0, MAGIC.length) !== 0) return false
    const foundId = found.readInt32BE(ID_OFFSET)
    if (id === 0) id = foundId
    return foundId === id
  }

  const stat = () => statSync(path, { bigint: true, throwIfNoEntry: false })
  return {
    isCurrent() {
      const file = stat()
      return file !== undefined && file.ino === inode && !isEmpty(file) && hasItsHeader()
    },
    wasMoved: () => stat()?.ino !== inode,
  }
}

/** Replaces NUL by its symbol (U+2400): libsql returns a stored text only up to its first NUL. */
export const bound = (values: readonly SqlValue[]): SqlValue[] =>
  values.map((value) =>
    typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '\u2400') : value,
  )
