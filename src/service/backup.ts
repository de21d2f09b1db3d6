/**
 * A backup of the database: one file, complete under its name. Reference images and outputs are files that never change, and
 * are copied by other means (docs/backup.md).
 */
import { existsSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type RushesError, usageError } from '../errors.js'
import { raceAbort } from '../host/abort.js'
import { checkCopy, copyDatabase } from '../host/database-copy.js'
import { flush, flushFolder, moveWithoutReplacing, removeFile, temporaryBeside } from '../host/files.js'
import { describeError, errorCode } from '../host/system-error.js'
import type { Verification } from './store/account-store.js'
import { verificationOf } from './store/shared-rows.js'
import { LEDGER_STATEMENTS } from './store/sqlite/ledger-check.js'

export interface Backup extends Verification {
  readonly path: string
  readonly bytes: number
}

export interface BackupOptions {
  readonly database: string
  readonly path: string
  readonly signal?: AbortSignal | undefined
}

/**
 * Copies the database while a service uses it. Throws `RushesError` (usage) when the file exists or cannot be written, and then
 * leaves nothing.
 */
export async function writeBackup({ database, path, signal }: BackupOptions): Promise<Backup> {
  checkTarget(path)
  const temporary = temporaryBeside(path)
  try {
    const file = await open(temporary, 'wx', 0o600)
    await file.close()
    await raceAbort(copyDatabase(database, temporary), signal)
    const results = await raceAbort(checkCopy(temporary, LEDGER_STATEMENTS), signal)
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
  // A folder is not created: it may be a disk that is not mounted.
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
