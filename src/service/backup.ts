/** Backs up the database while a service uses it. The files beside it never change, and are copied by other means. */
import { existsSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { usageError } from '../errors.js'
import { BUSY_TIMEOUT_MS, sqliteUri, withDatabase } from '../host/database.js'
import { flush, moveWithoutReplacing, removeFile, temporaryBeside } from '../host/files.js'
import { describeError, errorCode } from '../host/system-error.js'

export interface Backup {
  readonly path: string
  readonly bytes: number
}

/** Throws `RushesError` (usage) when the file exists or cannot be written, and then leaves no file. */
export async function writeBackup(database: string, path: string): Promise<Backup> {
  if (existsSync(path))
    throw usageError(`${path} already exists.`, 'Use another name, for example one with the date.')
  const temporary = temporaryBeside(path)
  try {
    const file = await open(temporary, 'wx', 0o600)
    copyDatabase(database, temporary)
    await flush(file).finally(() => file.close())
    await moveWithoutReplacing(temporary, path)
    return { path, bytes: statSync(path).size }
  } catch (error) {
    await removeFile(temporary).catch(() => {})
    if (errorCode(error) === 'EEXIST') throw alreadyExists(path)
    throw usageError(
      `Cannot write the backup ${describeError(error, path)}.`,
      'No backup was written. Check that the folder is writable and that the disk has space.',
    )
  }
}

const alreadyExists = (path: string) =>
  usageError(`${path} already exists.`, 'Use another name, for example one with the date.')

/**
 * Copies the database `from` into the empty file `to`. The copy gets its own id, so that the files of the original are foreign to
 * it.
 */
export function copyDatabase(from: string, to: string): void {
  const target = sqliteUri(to, 'rw').replaceAll("'", "''")
  withDatabase(sqliteUri(from, 'rw'), BUSY_TIMEOUT_MS, (source) => source.exec(`VACUUM INTO '${target}'`))
  const id = 'UPDATE format SET database_id = lower(hex(randomblob(16)))'
  withDatabase(sqliteUri(to, 'rw'), BUSY_TIMEOUT_MS, (copy) => copy.exec(id))
}
