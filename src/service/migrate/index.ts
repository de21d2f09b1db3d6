/**
 * Moves the data of a stopped service from its data folder to PostgreSQL, and its files to a storage. The folder's
 * database is locked; the rows are copied in one transaction; then the database is renamed to `service.db.moved`, which a
 * process that has it open notices before its next change. A move that ended between commit and rename is completed by
 * the next one: PostgreSQL keeps a checksum of the rows.
 */
import { existsSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { usageError } from '../../errors.js'
import type { OpenDatabase } from '../../host/database.js'
import { DATABASE_NAME, type DataFolders, openData } from '../data-folders.js'
import type { Storage } from '../files/contract.js'
import type { Verification } from '../store/account-store.js'
import type { Store } from '../store/contract.js'
import { outputOfRow, verificationOf } from '../store/rows.js'
import { explainDatabaseError, MOVED, openServiceDatabase, storeOf } from '../store/sqlite/index.js'
import { LEDGER } from '../store/statements.js'
import type { StoredOutput } from '../stored-run.js'
import { copyFiles, type FilesCopied, type KnownFiles } from './copy-files.js'
import {
  copyIdOf,
  copyRows,
  type DamagedRun,
  damagedRuns,
  isImported,
  OUTPUTS,
  pagesOf,
} from './copy-rows.js'

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
  /** Runs that were moved, and whose stored JSON is damaged. */
  readonly damaged: readonly DamagedRun[]
  readonly outputs: number
  readonly files: FilesCopied | undefined
}

/**
 * Throws `RushesError` (usage). Folder and database are then unchanged, unless the message says that the outcome is
 * unknown.
 */
export async function migrateData(migration: Migration): Promise<Migrated> {
  const { dataFolder } = migration
  const path = join(dataFolder, DATABASE_NAME)
  if (!existsSync(path) && !existsSync(`${path}${MOVED}`))
    throw usageError(
      `${dataFolder} contains no data of a local service.`,
      'Give its data folder with --from.',
    )
  const { folders, opened: source } = await openData(dataFolder, () => openServiceDatabase(path))
  const store = storeOf(source, { isAlone: true })
  try {
    await refuseWorkers(store)
    if (source.get('PRAGMA wal_checkpoint(TRUNCATE)')?.busy !== 0) throw isRunning()
    refuseProblems(await store.verify())
    // Nothing is written from here on, also not by other processes, so the file is complete without its log.
    return await source.transaction(async () => {
      // A service may have started before the transaction.
      await refuseWorkers(store)
      const moved = await move(migration, folders, source)
      renameSync(path, `${path}${MOVED}`)
      return moved
    })
  } catch (error) {
    throw explainDatabaseError(path, error) ?? error
  } finally {
    await store.close()
  }
}

async function move(
  { databaseUrl, storage, allowMissing = false, signal, onProgress }: Migration,
  folders: DataFolders,
  source: OpenDatabase,
): Promise<Migrated> {
  const expected = verificationOf(Object.values(LEDGER).map((sql) => source.all(sql)))
  refuseProblems(expected)
  const id = await copyIdOf(source, signal)
  const isMoved = await isImported(databaseUrl, id)
  const outputs = Number(source.get('SELECT count(*) AS outputs FROM outputs')?.outputs)
  const options = { folders, allowMissing, signal, ...(onProgress && { onProgress }) }
  const files = storage && (await copyFiles({ ...options, storage }, filesIn(source)))
  const damaged = [...damagedRuns(source)]
  if (isMoved) return { ...expected, outputs, files, damaged }
  const verification = await copyRows({
    url: databaseUrl,
    id,
    source,
    signal,
    check(imported) {
      if (describe(imported) !== describe(expected))
        throw new Error(`the copy does not match: ${describe(imported)} instead of ${describe(expected)}`)
    },
  })
  return { ...verification, outputs, files, damaged }
}

/** Throws if another process has a lease. */
async function refuseWorkers(store: Store): Promise<void> {
  if ((await store.listWorkers()).some(({ hasEnded }) => !hasEnded)) throw isRunning()
}

const isRunning = () =>
  usageError(
    'A service works on this data.',
    'Stop it first, so that no run is lost. Then run the command again.',
  )

function refuseProblems({ problems: [problem] }: Verification): void {
  if (problem !== undefined)
    throw usageError(
      `The data has problems, so it was not moved: ${problem}`,
      'See all of them with `rushes admin verify --data <folder>`.',
    )
}

const filesIn = (database: OpenDatabase): KnownFiles => ({
  outputs: outputsOf(database),
  images: new Map(
    database
      .all("SELECT key, sha256 FROM files WHERE kind = 'input'")
      .map(({ key, sha256 }) => [String(key), String(sha256)]),
  ),
})

function* outputsOf(database: OpenDatabase): Generator<StoredOutput> {
  for (const page of pagesOf(database, OUTPUTS)) yield* page.map(outputOfRow)
}

const describe = ({ accounts, entries, runs, credits, problems }: Verification): string =>
  [`${accounts} accounts, ${entries} entries, ${runs} runs, ${credits} credits`, ...problems].join(', ')
