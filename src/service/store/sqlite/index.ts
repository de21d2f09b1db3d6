/** The store's contract on SQLite, in one file that several processes can open at the same time. */
import { existsSync, statSync } from 'node:fs'
import { RushesError, usageError } from '../../../errors.js'
import { type Clock, systemClock } from '../../../host/clock.js'
import {
  BUSY_TIMEOUT_MS,
  isCorruption,
  isEmpty,
  NewerFormat,
  type OpenDatabase,
  openDatabase,
  quarantineForeignLog,
  withDatabase,
} from '../../../host/database.js'
import { isBusy } from '../../../host/system-error.js'
import { createStore, type Store } from '../index.js'
import type { Row } from '../sql.js'
import { createSqliteDatabase, SQLITE_SCRIPTS } from './database.js'

/** Throws `RushesError` (usage) if the file cannot be used or was written by another version of `rushes`. */
export function openSqliteStore(path: string, clock: Pick<Clock, 'now'> = systemClock): Store {
  const open = openServiceDatabase(path)
  const database = createSqliteDatabase(open, clock)
  const { stopWaiting, close } = database
  // A copy of the file has another inode.
  return createStore({
    database,
    pages: database,
    identity: async () => String(open.inode),
    stopWaiting,
    close,
  })
}

/** Ending of a database whose data `rushes admin migrate` has moved. */
export const MOVED = '.moved'

/** Throws as `openSqliteStore` does. */
export function openServiceDatabase(
  path: string,
  options: { readonly busyTimeoutMs?: number } = {},
): OpenDatabase {
  refuseLost(path)
  try {
    if (existsSync(path)) refuseForeign(path, options.busyTimeoutMs)
    return openDatabase({ ...options, path, migrations: SQLITE_SCRIPTS })
  } catch (error) {
    throw explainDatabaseError(path, error) ?? error
  }
}

/** Throws for a database of another program, before anything in it is created or changed. */
function refuseForeign(path: string, busyTimeoutMs = BUSY_TIMEOUT_MS): void {
  quarantineForeignLog(path)
  const [found] = withDatabase(path, busyTimeoutMs, (database) =>
    database
      .prepare(
        `SELECT count(*) AS tables, coalesce(sum(name IN ('accounts', 'keys', 'runs')), 0) AS ours
         FROM sqlite_schema WHERE type = 'table'`,
      )
      .all(),
  ) as readonly Row[]
  if (Number(found?.tables) > 0 && Number(found?.ours) < 3)
    throw usageError(
      `${path} is the database of another program, not of a service.`,
      'Use the data folder of a service (--data), or restore a backup (docs/operations.md).',
    )
}

/** Throws if the database was lost: a service must not continue with a new database and a new first key. */
function refuseLost(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined && existsSync(`${path}${MOVED}`))
    throw usageError(
      `The data of ${path} was moved to another database.`,
      `Use it there (--database). To use this folder again as it was, rename ${path}${MOVED} to ${path}.`,
    )
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false })
  const isLost = found === undefined ? log !== undefined && log.size > 0 : isEmpty(found)
  if (isLost)
    throw usageError(
      `${path} is ${found === undefined ? 'missing, and its log is there' : 'empty'}: ` +
        'the accounts and runs of this service are gone.',
      'Restore a backup (docs/operations.md). ' +
        'To start with new data, remove its files (service.db*), or use another data folder (--data).',
    )
}

/** Explains an error of the database. Returns undefined for other errors. */
export function explainDatabaseError(path: string, error: unknown): RushesError | undefined {
  if (error instanceof NewerFormat)
    return usageError(
      `${path} was written by another version of rushes: it has ${error.message}.`,
      'Use that version, or another data folder (--data).',
    )
  if (isCorruption(error))
    return new RushesError('usage', `${path} is damaged, or not a database.`, { hint: RESTORE, cause: error })
  if (isBusy(error))
    return usageError(
      `${path} is locked by another process.`,
      'End the program that holds it (`fuser -v` or `lsof` with the path shows which), and try again.',
    )
  return undefined
}

const RESTORE =
  'Keep a copy of it, stop the service, and restore a backup made with `rushes admin backup` (docs/operations.md).'
