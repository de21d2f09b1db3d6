/**
 * Moves the data of a service from its data folder to PostgreSQL, and its files to a storage. The only change in the
 * folder is a mark, which blocks all writes to it. Most files are copied first, which can take hours. Then the folder
 * is locked, newer files are copied, and the rows are copied in one transaction. Folder and PostgreSQL are never
 * writable at the same time:
 *
 *   the folder is locked               if this process ends, the folder is unchanged
 *   the folder is marked `committing`  both are read-only
 *   PostgreSQL commits                 if the response is lost, the next migration checks the result
 *   the folder is marked `moved`
 */
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { usageError } from '../../errors.js'
import type { OpenDatabase } from '../../host/database.js'
import { BUSY_TIMEOUT_MS, connect, createPrivately, type SqliteConnection } from '../../host/database-file.js'
import { isBusy } from '../../host/system-error.js'
import { DATABASE_NAME, type DataFolders, openData } from '../data-folders.js'
import type { Storage } from '../files/contract.js'
import type { Verification } from '../store/account-store.js'
import type { Store } from '../store/contract.js'
import { nameOf } from '../store/postgres/connection-errors.js'
import { outputOfRow } from '../store/rows.js'
import { explainDatabaseError, openServiceDatabase, storeOf } from '../store/sqlite/index.js'
import { createSourceLock, type MovedMark, readMark, type SourceLock } from '../store/sqlite/moved-mark.js'
import type { StoredOutput } from '../stored-run.js'
import { createFileCopy, type FilesCopied, type KnownFiles } from './copy-files.js'
import { CommitUnknown, copyRows, refuseFilled, wasImported } from './copy-rows.js'

export interface Migration {
  readonly dataFolder: string
  readonly databaseUrl: string
  /** Storage for the files. If undefined, the files stay in the data folder. */
  readonly storage: Storage | undefined
  /** Whether outputs without a file are allowed, because `--retain` has removed the file. */
  readonly allowMissing?: boolean | undefined
  readonly signal?: AbortSignal | undefined
  onProgress?(files: number): void
}

export interface Migrated extends Verification {
  readonly outputs: number
  readonly files: FilesCopied | undefined
}

interface SourceFolder {
  readonly folders: DataFolders
  readonly database: OpenDatabase
  readonly store: Pick<Store, 'verify' | 'listWorkers'>
}

const OUTPUTS_PAGE = 500

/**
 * Throws `RushesError` (usage). Folder and database are then unchanged, unless the message says that the outcome is
 * unknown.
 */
export async function migrateData(migration: Migration): Promise<Migrated> {
  const { dataFolder, databaseUrl } = migration
  return await withFolderLock(dataFolder, async (path) => {
    // Before the database is opened: opening can change the format, and a marked database rejects all writes.
    const isMoved = await resolveInterrupted(path, databaseUrl)
    const { folders, opened: database } = await openData(dataFolder, () =>
      openServiceDatabase(path, { evenMoved: isMoved }),
    )
    const store = storeOf(database)
    try {
      return await move({ folders, database, store }, migration, isMoved)
    } finally {
      await store.close()
    }
  })
}

/** `isMoved`: whether the rows are already in the new database. */
async function move(source: SourceFolder, migration: Migration, isMoved: boolean): Promise<Migrated> {
  const { folders, database, store } = source
  const { databaseUrl, storage, allowMissing = false, signal, onProgress } = migration
  if (!isMoved) {
    refuseProblems(await store.verify())
    await refuseRunning(source)
    await refuseFilled(databaseUrl)
  }
  const copyFiles =
    storage && createFileCopy({ folders, storage, allowMissing, signal, ...(onProgress && { onProgress }) })
  const filesBefore = await copyFiles?.(filesIn(database))
  if (isMoved) return { ...(await store.verify()), outputs: countOutputs(database), files: filesBefore }

  const id = randomUUID()
  const lock = createSourceLock(database, { id, database: nameOf(databaseUrl) })
  try {
    lock.hold()
    await refuseRunning(source)
    const expected = await store.verify()
    refuseProblems(expected)
    const files = await copyFiles?.(filesIn(database))
    const verification = await copyRows({
      url: databaseUrl,
      id,
      source: database,
      signal,
      check(imported) {
        if (describe(imported) !== describe(expected))
          throw new Error(`the copy does not match: ${describe(imported)} instead of ${describe(expected)}`)
      },
      beforeCommit: lock.seal,
    })
    lock.complete()
    return { ...verification, outputs: countOutputs(database), files }
  } catch (error) {
    if (!(error instanceof CommitUnknown)) lock.undo()
    throw error
  } finally {
    lock.close()
  }
}

/**
 * Makes a folder usable again after its data was moved. Returns the name of the database that has the data. Throws
 * `RushesError` (usage).
 */
export async function undoMigration(dataFolder: string): Promise<string> {
  return await withFolderLock(dataFolder, async (path) => {
    const mark = readMark(path, BUSY_TIMEOUT_MS)
    if (mark === undefined || mark.state === 'copying')
      throw usageError(`The data in ${dataFolder} was not moved.`)
    withMark(path, mark, (lock) => lock.undo())
    if (readMark(path, BUSY_TIMEOUT_MS) !== undefined)
      throw usageError(`The mark of ${path} cannot be removed.`, 'Check that it can be written.')
    return mark.database
  })
}

/** Allows one migration of a folder at a time: a second one would remove the mark of the first, or replace it. */
async function withFolderLock<Result>(
  dataFolder: string,
  work: (path: string) => Promise<Result>,
): Promise<Result> {
  if (!existsSync(join(dataFolder, DATABASE_NAME)))
    throw usageError(
      `${dataFolder} contains no data of a local service.`,
      'Give its data folder with --from.',
    )
  const { folders, opened: lock } = await openData(dataFolder, lockFolder)
  try {
    return await work(folders.database)
  } catch (error) {
    throw explainDatabaseError(folders.database, error) ?? error
  } finally {
    lock.close()
  }
}

/** Locks the folder. The lock file is never removed, because another process could have just locked it. */
function lockFolder(path: string): SqliteConnection {
  const lockPath = `${path}.moving`
  createPrivately(lockPath)
  const lock = connect(lockPath)
  try {
    lock.exec('PRAGMA busy_timeout = 100; BEGIN EXCLUSIVE')
    return lock
  } catch (error) {
    lock.close()
    throw isBusy(error)
      ? usageError(
          'Another `admin migrate` works on this folder.',
          'Wait until it has ended. Then run the command again.',
        )
      : error
  }
}

/** Runs `work` with a source lock on a database that is not opened. */
function withMark(path: string, mark: MovedMark, work: (lock: SourceLock) => void): void {
  const lock = createSourceLock({ path, isCurrent: () => true }, mark)
  try {
    work(lock)
  } finally {
    lock.close()
  }
}

/** Completes or undoes a migration that was interrupted during its commit. Returns whether the data was moved. */
async function resolveInterrupted(path: string, databaseUrl: string): Promise<boolean> {
  const mark = readMark(path, BUSY_TIMEOUT_MS)
  if (mark?.state !== 'committing') return false
  if (mark.database !== nameOf(databaseUrl))
    throw usageError(
      `A move of ${path} to ${mark.database} was interrupted, and may have been completed.`,
      'Give that database with --to: the move is completed or repeated. To use the folder as it is, run the command with --undo.',
    )
  const isMoved = await wasImported(databaseUrl, mark.id)
  withMark(path, mark, (lock) => (isMoved ? lock.complete() : lock.undo()))
  return isMoved
}

function refuseProblems({ problems: [problem] }: Verification): void {
  if (problem !== undefined)
    throw usageError(
      `The data has problems, so it was not moved: ${problem}`,
      'See all of them with `rushes admin verify --data <folder>`.',
    )
}

/** Throws if another process has a lease, because it may write at any time. */
async function refuseRunning({ database, store }: SourceFolder): Promise<void> {
  const workers = (await store.listWorkers()).filter(({ hasEnded }) => !hasEnded)
  const now = Number(database.get("SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER) AS now")?.now)
  if (workers.some(({ heartbeatAtMs }) => now - heartbeatAtMs < LEASE_MS))
    throw usageError(
      'A service works on this data.',
      'Stop it first, so that no run is lost. Then run the command again.',
    )
}
/** Age of a heartbeat from which its worker has ended. A running worker renews its lease every 5 s. */
const LEASE_MS = 30_000

const filesIn = (database: Pick<OpenDatabase, 'all'>): KnownFiles => ({
  outputs: outputsOf(database),
  images: new Map(
    database
      .all("SELECT key, sha256 FROM files WHERE kind = 'input' AND state = 'stored'")
      .map(({ key, sha256 }) => [String(key), String(sha256)]),
  ),
})

function* outputsOf(database: Pick<OpenDatabase, 'all'>): Generator<StoredOutput> {
  let last = 0
  for (;;) {
    const rows = database.all(
      `SELECT *, rowid AS page_key FROM outputs WHERE rowid > ?1 ORDER BY rowid LIMIT ${OUTPUTS_PAGE}`,
      last,
    )
    if (rows.length === 0) return
    yield* rows.map(outputOfRow)
    last = Number(rows.at(-1)?.page_key)
  }
}

const countOutputs = (database: Pick<OpenDatabase, 'get'>): number =>
  Number(database.get('SELECT count(*) AS outputs FROM outputs')?.outputs)

const describe = ({ accounts, entries, runs, credits, problems }: Verification): string =>
  [`${accounts} accounts, ${entries} entries, ${runs} runs, ${credits} credits`, ...problems].join(', ')
