/**
 * Backs up the database into one file, which appears under its name only when it is complete. Reference images and
 * outputs are files that never change; copy them by other means (docs/operations.md). SQLite's calls are synchronous,
 * so an interrupt takes effect between the steps.
 */
import { existsSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { type RushesError, usageError } from '../errors.js'
import type { Row } from '../host/database.js'
import {
  BUSY_TIMEOUT_MS,
  newApplicationId,
  type SqliteConnection,
  sqliteUri,
  withDatabase,
} from '../host/database-file.js'
import { flush, flushFolder, moveWithoutReplacing, removeFile, temporaryBeside } from '../host/files.js'
import { describeError, errorCode } from '../host/system-error.js'
import type { Verification } from './store/account-store.js'
import { verificationOf } from './store/rows.js'
import { SQLITE_RANDOM_ID } from './store/sqlite/database.js'
import { LEDGER } from './store/statements.js'

export interface Backup extends Verification {
  readonly path: string
  readonly bytes: number
}

interface BackupOptions {
  readonly database: string
  readonly path: string
  readonly signal?: AbortSignal | undefined
}

/**
 * Copies the database while a service uses it. Throws `RushesError` (usage) when the file exists or cannot be written,
 * and then leaves no file.
 */
export async function writeBackup({ database, path, signal }: BackupOptions): Promise<Backup> {
  checkTarget(path)
  const temporary = temporaryBeside(path)
  try {
    const file = await open(temporary, 'wx', 0o600)
    await file.close()
    copyDatabase(database, temporary)
    withExisting(temporary, (copy) => copy.exec(NEW_DATABASE_ID))
    await interruptible(signal)
    const results = checkCopy(temporary, Object.values(LEDGER))
    const bytes = statSync(temporary).size
    await flushFile(temporary)
    await interruptible(signal)
    await moveWithoutReplacing(temporary, path)
    await flushFolder(dirname(path)).catch(() => {})
    return { path, bytes, ...verificationOf(results) }
  } catch (error) {
    for (const ending of ['', '-journal']) await removeFile(temporary + ending).catch(() => {})
    throw signal?.aborted ? error : refusalOf(error, { database, path })
  }
}

function checkTarget(path: string): void {
  if (path === '-')
    throw usageError(
      'A backup cannot be written to standard output.',
      'Name a file. To send it elsewhere, copy the finished file.',
    )
  if (path === '') throw usageError('The name of the backup is empty.')
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory())
    throw usageError(`${path} is a folder.`, `Name a file in it: ${path.replace(/\/+$/, '')}/service.db`)
  if (existsSync(path)) throw alreadyExists(path)
  const folder = dirname(path)
  // Do not create the folder: it may be the mount point of a disk that is not mounted.
  if (!existsSync(folder)) throw usageError(`${folder}: no such folder`, 'Create the folder first.')
}

const alreadyExists = (path: string) =>
  usageError(`${path} already exists.`, 'Use another name, for example one with the date.')

function refusalOf(error: unknown, { database, path }: BackupOptions): RushesError {
  const code = errorCode(error) ?? ''
  if (code === 'EEXIST') return alreadyExists(path)
  if (/^SQLITE_(BUSY|LOCKED|CORRUPT|NOTADB)/.test(code))
    return usageError(`Cannot back up ${describeError(error, database)}.`, 'No backup was written.')
  return usageError(
    `Cannot write the backup ${describeError(error, path)}.`,
    'No backup was written. Check that the folder is writable and that the disk has space.',
  )
}

async function flushFile(path: string): Promise<void> {
  const handle = await open(path, 'r+')
  try {
    await flush(handle)
  } finally {
    await handle.close()
  }
}

/** Throws if the signal was aborted, also by an interrupt that arrived during a synchronous call. */
async function interruptible(signal: AbortSignal | undefined): Promise<void> {
  await setImmediate()
  signal?.throwIfAborted()
}

/** The files of the original must not be removed by a service on the copy, which does not know the newer ones. */
const NEW_DATABASE_ID = `UPDATE format SET database_id = ${SQLITE_RANDOM_ID}`

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`

/** URI of an existing database (`mode=rw`), which SQLite does not create. */
const existingUri = (path: string): string => sqliteUri(path, 'rw')

const withExisting = <Result>(path: string, work: (database: SqliteConnection) => Result): Result =>
  withDatabase(existingUri(path), BUSY_TIMEOUT_MS, work)

/**
 * Copies the database `from` into the empty file `to`. `VACUUM INTO` reads one snapshot and blocks no writer. SQLite's
 * backup API starts again after every write, and libsql does not offer it. The copy is complete in one file. It gets a
 * new application id, so that a process that has the original open recognizes the copy as another file when it replaces
 * the original.
 */
export function copyDatabase(from: string, to: string): void {
  withExisting(from, (database) => database.exec(`VACUUM INTO ${quoted(existingUri(to))}`))
  withExisting(to, (database) => database.exec(newApplicationId()))
}

/**
 * Returns the rows of each statement. Throws if SQLite finds the file corrupt. Does not check the indexes: `VACUUM
 * INTO` rebuilds them, and the check would take ten times as long.
 */
export function checkCopy(path: string, statements: readonly string[]): readonly Row[][] {
  return withExisting(path, (database) => {
    const rows = (sql: string) => database.prepare(sql).all() as Row[]
    const found = rows('PRAGMA quick_check(5)').map(({ quick_check }) => String(quick_check))
    if (found.join() !== 'ok') throw Object.assign(new Error(found.join('; ')), { code: 'SQLITE_CORRUPT' })
    return statements.map(rows)
  })
}
