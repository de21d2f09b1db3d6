/** What is wrong with the database file, and what to do, in sentences. */
import { RushesError, usageError } from '../../../errors.js'
import { isCorruption } from '../../../host/corruption.js'
import { NewerFormat } from '../../../host/database.js'
import { isBusy } from '../../../host/system-error.js'
import { explainMoved } from './moved-mark.js'

/** Undefined for other errors. */
export function explainDatabaseError(path: string, error: unknown): RushesError | undefined {
  if (error instanceof NewerFormat)
    return usageError(
      `${path} was written by a newer version of rushes: it has ${error.message}.`,
      'Update rushes, or use another data folder (--data).',
    )
  if (isCorruption(error))
    return new RushesError('usage', `${path} is damaged, or not a database.`, { hint: RESTORE, cause: error })
  const moved = explainMoved(path, error)
  if (moved !== undefined) return moved
  if (isBusy(error))
    return usageError(
      `${path} is locked by another process.`,
      'End the program that holds it (`fuser -v` or `lsof` with the path shows which), and try again.',
    )
  return undefined
}

const RESTORE =
  'Keep a copy of it, stop the service, and restore a backup made with `rushes admin backup` (docs/backup.md).'
