/**
 * Moves the data of a service from its folder to PostgreSQL, and its files to a storage. The folder is not changed. Files
 * come first, so that no run in the new database lacks its outputs; the database then is filled in one transaction. Both can
 * be repeated.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { usageError } from '../../errors.js'
import { raceAbort } from '../../host/abort.js'
import type { OpenDatabase } from '../../host/database.js'
import { DATABASE_NAME } from '../data-folders.js'
import type { Storage } from '../files/contract.js'
import { openData } from '../open-data.js'
import type { Verification } from '../store/account-store.js'
import { importTables, refuseFilled } from '../store/postgres/import.js'
import { outputOfRow } from '../store/shared-rows.js'
import { openServiceDatabase, storeOf } from '../store/sqlite/index.js'
import type { StoredOutput } from '../stored-run.js'
import { copyFiles, type FilesCopied } from './copy-files.js'
import { tablesOf } from './sqlite-tables.js'

export interface Migration {
  readonly dataFolder: string
  readonly databaseUrl: string
  /** Undefined: the files stay in the data folder. */
  readonly storage: Storage | undefined
  /** Whether outputs may have no file, since `--retain` has removed it. */
  readonly allowMissing?: boolean | undefined
  readonly signal?: AbortSignal | undefined
  onProgress?(files: number): void
}

export interface Migrated extends Verification {
  readonly outputs: number
  readonly files: FilesCopied | undefined
}

const OUTPUTS_PAGE = 500

/** Throws `RushesError` (usage), and then the database is as it was. */
export async function migrateData(migration: Migration): Promise<Migrated> {
  const { dataFolder, databaseUrl, storage, allowMissing = false, signal, onProgress } = migration
  if (!existsSync(join(dataFolder, DATABASE_NAME)))
    throw usageError(
      `${dataFolder} contains no data of a local service.`,
      'Give its data folder with --from.',
    )
  const { folders, opened: database } = await openData(dataFolder, (path) => openServiceDatabase(path))
  const store = storeOf(database)
  try {
    const before = await store.verify()
    refuseProblems(before)
    await refuseRunning(database, store)
    await refuseFilled(databaseUrl)
    const files =
      storage === undefined
        ? undefined
        : await copyFiles({
            folders,
            outputs: outputsOf(database),
            storage,
            allowMissing,
            signal,
            ...(onProgress && { onProgress }),
          })
    const countOutputs = () => Number(database.get('SELECT count(*) AS outputs FROM outputs')?.outputs)
    const outputs = countOutputs()
    const verification = await raceAbort(
      importTables({
        url: databaseUrl,
        ...tablesOf(database),
        async check(imported) {
          signal?.throwIfAborted()
          const after = await store.verify()
          if (!isSame(before, after) || outputs !== countOutputs())
            throw usageError(
              'The service was used while its data was copied; nothing was moved.',
              'Stop it, and run the command again.',
            )
          if (!isSame(imported, after))
            throw new Error(`the copy does not match: ${describe(imported)} instead of ${describe(after)}`)
        },
      }),
      signal,
    )
    return { ...verification, outputs, files }
  } finally {
    await store.close()
  }
}

function refuseProblems({ problems: [problem] }: Verification): void {
  if (problem !== undefined)
    throw usageError(
      `The data has problems, so it was not moved: ${problem}`,
      'See all of them with `rushes admin verify --data <folder>`.',
    )
}

/** Another process with a lease may write at any moment. */
async function refuseRunning(
  database: Pick<OpenDatabase, 'get'>,
  store: Pick<ReturnType<typeof storeOf>, 'listWorkers'>,
): Promise<void> {
  const workers = (await store.listWorkers()).filter(({ hasEnded }) => !hasEnded)
  const now = Number(database.get("SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER) AS now")?.now)
  if (workers.some(({ heartbeatAtMs }) => now - heartbeatAtMs < LEASE_MS))
    throw usageError(
      'A service works on this data.',
      'Stop it first, so that no run is lost. Then run the command again.',
    )
}
/** A worker that is alive renews its lease every 5 s. */
const LEASE_MS = 30_000

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

const isSame = (one: Verification, other: Verification): boolean => describe(one) === describe(other)

const describe = ({ accounts, entries, runs, credits, problems }: Verification): string =>
  `${accounts} accounts, ${entries} entries, ${runs} runs, ${credits} credits${problems.map((problem) => `, ${problem}`).join('')}`
