/**
 * The file of an SQLite database, without its schema: opening, locking and reading it, the logs beside it, and its
 * identity. It may be removed, replaced, or overwritten in place while it is open. So each new database has a
 * random number in its header (SQLite's application id), and a copy made by `VACUUM INTO` gets a new one.
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

/** Loads the native package at its first use, so that a command that can do without a database continues without it. */
export function connect(path: string): Database.Database {
  let Driver: typeof Database
  try {
    Driver = loadModule('libsql')
  } catch (error) {
    const [reason] = messageOf(error).split('\n', 1)
    throw usageError(
      `The SQLite package for this system (${process.platform}-${process.arch}) cannot be loaded: ${reason}.`,
      'Install rushes again on this machine, without --omit=optional: `npm install -g rushes`.',
    )
  }
  return new Driver(path)
}

/** Opens a file as it is, without creating or migrating it, while `work` runs. */
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

/** A process that ends holds the file for a moment while it writes the log back. */
const READ_TIMEOUT_MS = 200

/**
 * The rows of one query, for shell completion and estimates: waits only a moment. Throws when the file cannot be
 * read.
 */
export const readRows = (path: string, sql: string, ...values: readonly SqlValue[]): readonly Row[] =>
  withDatabase(
    `${pathToFileURL(path).href}?mode=ro`,
    READ_TIMEOUT_MS,
    (database) => database.prepare(sql).all(values) as Row[],
  )

/** In bytes, with the write-ahead log. */
export const sizeOfDatabase = (path: string): number =>
  [path, `${path}-wal`].reduce((sum, each) => sum + (statSync(each, { throwIfNoEntry: false })?.size ?? 0), 0)

/** Mode 0600, which -wal and -shm inherit; libsql would create it 0644. */
export function createPrivately(path: string): void {
  makeFolders(dirname(path), 0o700)
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
}

/**
 * SQLite ends a transaction itself when the disk is full. The first error says what happened, so this one is
 * ignored.
 */
export function rollBack(database: Database.Database): void {
  try {
    database.exec('ROLLBACK')
  } catch {
    // No transaction is active.
  }
}

/**
 * Runs `work` in one process at a time. SQLite holds an operating system's lock on an empty file, which is released
 * when the process ends in any way.
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

/** Distinguishes a file from its replacement; undefined where there is none. */
export const inodeOf = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.ino

/** SQLite takes a file of one byte for an empty one too. */
export const isEmpty = ({ size }: { readonly size: number }): boolean => size <= 1

/** SQLite finds these files of a database by their names alone. */
export const LOGS = ['-journal', '-wal', '-shm'] as const

/** The new name of a file that cannot be used. */
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
 * Renames a log that belongs to another database, which SQLite would read: one beside a file that is not in WAL
 * mode, such as a restored backup. Its new name, or undefined.
 */
export function quarantineForeignLog(path: string): string | undefined {
  const log = `${path}-wal`
  // The log is looked for first: a file is in WAL mode before it has a log.
  if (!existsSync(log) || isInWalMode(path)) return undefined
  const to = quarantineName(log)
  moveIfThere(log, to)
  rmSync(`${path}-shm`, { force: true })
  return to
}

/**
 * Empties the log of a file that was overwritten, so that SQLite has nothing to write into the other database when
 * it closes. A copy is kept.
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
 * Never closed: when a process closes any descriptor of a file, the system releases all locks that this process has
 * on it, and those of SQLite are among them.
 */
const descriptors = new Map<string, number>()

function descriptorOf(path: string): number {
  const found = statSync(path, { throwIfNoEntry: false })
  const known = found && descriptors.get(`${found.dev}:${found.ino}`)
  if (known !== undefined) return known
  const descriptor = openSync(path, 'r')
  const { dev, ino } = fstatSync(descriptor)
  descriptors.set(`${dev}:${ino}`, descriptor)
  return descriptor
}

function readHeader(descriptor: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES)
  readSync(descriptor, header, 0, HEADER_BYTES, 0)
  return header
}

/** Whether the database uses a write-ahead log, by its header. */
const isInWalMode = (path: string): boolean => readHeader(descriptorOf(path))[WAL_OFFSET] !== 1

/** SQL that gives the database a new random number. */
export const newApplicationId = (): string => `PRAGMA application_id = ${randomInt(1, 2 ** 31)}`

export interface FileIdentity {
  /**
   * False when the file was removed, emptied, replaced or overwritten: writes to it are lost. Takes some
   * microseconds.
   */
  isCurrent(): boolean
  /** Whether another file has its name, or none. */
  wasMoved(): boolean
}

/** Of the file at `path`, whose inode is `inode`. */
export function identifyFile(path: string, inode: number | undefined): FileIdentity {
  const descriptor = descriptorOf(path)
  const header = () => readHeader(descriptor)
  /** 0 in a database of an earlier version, until a migration is in the file itself. */
  let id = header().readInt32BE(ID_OFFSET)

  function hasItsHeader(): boolean {
    const found = header()
    if (found.compare(MAGIC, 0, MAGIC.length, 0, MAGIC.length) !== 0) return false
    const foundId = found.readInt32BE(ID_OFFSET)
    if (id === 0) id = foundId
    return foundId === id
  }

  const stat = () => statSync(path, { throwIfNoEntry: false })
  return {
    isCurrent() {
      const file = stat()
      return file !== undefined && file.ino === inode && !isEmpty(file) && hasItsHeader()
    },
    wasMoved: () => stat()?.ino !== inode,
  }
}
