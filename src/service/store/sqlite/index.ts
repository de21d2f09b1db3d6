/** The store's contract on SQLite, in one file that several processes can open at the same time. */
import { existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { RushesError, usageError } from '../../../errors.js'
import { isCorruption } from '../../../host/corruption.js'
import { NewerFormat, type OpenDatabase, openDatabase, ReplacedFile } from '../../../host/database.js'
import { BUSY_TIMEOUT_MS, isEmpty, quarantineForeignLog, withDatabase } from '../../../host/database-file.js'
import {
  type HeldLock,
  isLocked,
  locksFolder,
  removeLock,
  removeOldLocks,
  takeLock,
} from '../../../host/process-lock.js'
import { isBusy } from '../../../host/system-error.js'
import { observed } from '../calls.js'
import type { Store, WorkerRecord } from '../contract.js'
import { createStore } from '../index.js'
import type { LeaseStore } from '../queue.js'
import type { Database, Row } from '../sql.js'
import { createSqliteDatabase, SQLITE_SCRIPTS } from './database.js'

/** Throws `RushesError` (usage) if the file cannot be used or was written by another version of `rushes`. */
export function openSqliteStore(path: string): Store {
  return storeOf(openServiceDatabase(path))
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

export function storeOf(open: OpenDatabase): Store {
  const database = createSqliteDatabase(open)
  const leases = createLeases(database, open.path)
  const store = createStore(database, leases)

  /** If the file was removed or replaced, a missing row proves nothing. */
  function assertNotReplaced(found: unknown): void {
    if (found === undefined && !open.isCurrent()) throw new ReplacedFile()
  }
  const assertions = {
    findKey: assertNotReplaced,
    findUser: assertNotReplaced,
    findSession: assertNotReplaced,
    findRun: assertNotReplaced,
    cancelRun: assertNotReplaced,
    findOutput: assertNotReplaced,
  }

  return {
    ...observed(store, assertions),
    async close() {
      await database.close()
      leases.end()
    },
  }
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

const NOW_MS = "CAST(unixepoch('subsec') * 1000 AS INTEGER)"

const SQL = {
  renewLease: `
    INSERT INTO workers (id, heartbeat_at) VALUES ($1, ${NOW_MS})
    ON CONFLICT (id) DO UPDATE SET heartbeat_at = max(heartbeat_at + 1, excluded.heartbeat_at)`,

  extendLease: `UPDATE workers SET heartbeat_at = max(heartbeat_at + 1, ${NOW_MS}) WHERE id = $1`,

  // Executed once a second.
  listWorkers: `SELECT id, heartbeat_at FROM workers`,
} as const

/**
 * Leases of workers. Detects workers that have ended: each worker holds a file lock while its process runs. For a worker
 * without a lock, only the expired lease shows that it has ended. `path`: path of the database. `end` releases the locks
 * of this process: its workers that have a row then count as ended.
 */
function createLeases({ all, run, transaction }: Database, path: string): LeaseStore & { end(): void } {
  const folder = locksFolder(dirname(path))
  const held = new Map<string, HeldLock | undefined>()
  const pathOf = (id: string) => join(folder, id)

  /** `others`: ids of all other rows, whose locks are kept. */
  function hold(id: string, others: readonly string[]): void {
    // The lock file is missing if another process reaped this worker while it was alive.
    if (held.get(id) !== undefined && existsSync(pathOf(id))) return
    held.get(id)?.release()
    held.set(id, takeLock(pathOf(id)))
    removeOldLocks(folder, others)
  }

  const workerOfRow = (row: Row): WorkerRecord => ({
    id: String(row.id),
    heartbeatAtMs: Number(row.heartbeat_at),
    // Needs no file for workers of this process: to open one takes longer than to read the queue.
    hasEnded: held.get(String(row.id)) === undefined && isLocked(pathOf(String(row.id))) === false,
  })
  return {
    renewLease: (id) =>
      transaction(async (tx) => {
        const others = (await tx.all(SQL.listWorkers)).map((row) => String(row.id))
        hold(id, others)
        await tx.run(SQL.renewLease, id)
      }),
    extendLease: async (id) => (await run(SQL.extendLease, id)) > 0,
    listWorkers: async () => (await all(SQL.listWorkers)).map(workerOfRow),
    async forget(id) {
      const ownLock = held.get(id)
      held.delete(id)
      if (ownLock === undefined) removeLock(pathOf(id))
      else ownLock.remove()
    },
    end() {
      for (const lock of held.values()) lock?.release()
      held.clear()
    },
  }
}
