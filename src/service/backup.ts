/**
 * Backs up the database into one file, which appears under its name only when it is complete. Reference images and
 * outputs are files that never change; copy them by other means (docs/operations.md).
 */
import { existsSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type RushesError, usageError } from '../errors.js'
import { raceAbort } from '../host/abort.js'
import type { Row } from '../host/database.js'
import { BUSY_TIMEOUT_MS, newApplicationId } from '../host/database-file.js'
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
    await raceAbort(copyDatabase(database, temporary), signal)
    await withConnection(temporary, (copy) => copy.exec(NEW_DATABASE_ID))
    const results = await raceAbort(checkCopy(temporary, Object.values(LEDGER)), signal)
    const bytes = statSync(temporary).size
    await flushFile(temporary)
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

/** Methods of `libsql/promise` that this file uses. The package's own types are all `any`. */
interface AsyncConnection {
  exec(sql: string): Promise<unknown>
  prepare(sql: string): Promise<{ all(): Promise<Row[]> }>
  close(): void
}

/** The files of the original must not be removed by a service on the copy, which does not know the newer ones. */
const NEW_DATABASE_ID = `UPDATE format SET database_id = ${SQLITE_RANDOM_ID}`

const loadModule = createRequire(import.meta.url)

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`

/** URI of an existing database (`mode=rw`): a copy that was cancelled and removed must not be created again. */
const existingUri = (path: string): string => `${pathToFileURL(path).href}?mode=rw`

async function withConnection<Result>(path: string, work: (database: AsyncConnection) => Promise<Result>) {
  const AsyncDatabase: new (path: string, options: object) => AsyncConnection = loadModule('libsql/promise')
  const database = new AsyncDatabase(existingUri(path), {})
  try {
    await database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
    return await work(database)
  } finally {
    database.close()
  }
}

/**
 * Copies the database `from` into the empty file `to`. `VACUUM INTO` reads one snapshot and blocks no writer. SQLite's
 * backup API starts again after every write, and libsql does not offer it. The copy is complete in one file. It gets a
 * new application id, so that a process that has the original open recognizes the copy as another file when it replaces
 * the original.
 */
export async function copyDatabase(from: string, to: string): Promise<void> {
  await withConnection(from, (database) => database.exec(`VACUUM INTO ${quoted(existingUri(to))}`))
  await withConnection(to, (database) => database.exec(newApplicationId()))
}

/**
 * Returns the rows of each statement. Throws if SQLite finds the file corrupt. Does not check the indexes: `VACUUM
 * INTO` rebuilds them, and the check would take ten times as long.
 */
export async function checkCopy(path: string, statements: readonly string[]): Promise<readonly Row[][]> {
  return await withConnection(path, async (database) => {
    const rows = async (sql: string) => (await database.prepare(sql)).all()
    const found = (await rows('PRAGMA quick_check(5)')).map(({ quick_check }) => String(quick_check))
    if (found.join() !== 'ok') throw Object.assign(new Error(found.join('; ')), { code: 'SQLITE_CORRUPT' })
    const results: Row[][] = []
    for (const sql of statements) results.push(await rows(sql))
    return results
  })
}
