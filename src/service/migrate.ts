/**
 * Moves the data of a stopped service from its data folder to an empty PostgreSQL database, and its files to a storage.
 * All rows go in one transaction, while the folder's database is locked. Then that is renamed to `service.db.moved`, which a
 * process that has it open notices before its next change.
 */
import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { usageError } from '../errors.js'
import { onAbort } from '../host/abort.js'
import { type OpenDatabase, type Row, withDatabase } from '../host/database.js'
import { isBusy } from '../host/system-error.js'
import { DATABASE_NAME, type DataFolders, openData } from './data.js'
import { OWNER_KEY, type Storage } from './files/contract.js'
import { type Verification, verifyLedger } from './store/accounts.js'
import { databaseIdOf, FIND_ID } from './store/index.js'
import { nameOf } from './store/postgres/connection-errors.js'
import { type Client, createClient } from './store/postgres/database.js'
import { openSchema } from './store/postgres/open-schema.js'
import { explainDatabaseError, MOVED, openServiceDatabase } from './store/sqlite/index.js'

interface Migration {
  readonly dataFolder: string
  readonly databaseUrl: string
  /** Storage for the files. If undefined, the files stay in the data folder. */
  readonly storage: Storage | undefined
  readonly signal?: AbortSignal | undefined
}

interface Migrated extends Verification {
  /** Number of files in the storage. Undefined without one. */
  readonly files: number | undefined
}

const BUSY_MS = 500

/** Throws `RushesError` (usage), and has then changed neither folder nor database. */
export async function migrateData(migration: Migration): Promise<Migrated> {
  const { dataFolder, databaseUrl, storage, signal } = migration
  const path = join(dataFolder, DATABASE_NAME)
  if (!existsSync(path) && !existsSync(`${path}${MOVED}`))
    throw usageError(
      `${dataFolder} contains no data of a local service.`,
      'Give its data folder with --data.',
    )
  if (existsSync(path)) refuseUsed(path)
  const { folders, opened: source } = await openData(dataFolder, () =>
    openServiceDatabase(path, { busyTimeoutMs: BUSY_MS }),
  )
  try {
    // The file is complete without its log, and may be renamed.
    source.get('PRAGMA wal_checkpoint(TRUNCATE)')
    return await source.transaction(async () => {
      const files = storage && (await copyFiles(folders, storage, signal))
      const verification = await copyRows(source, databaseUrl, signal)
      const id = databaseIdOf(source.get(FIND_ID), source.inode)
      renameSync(path, `${path}${MOVED}`)
      if (storage === undefined) releaseFiles(folders, id)
      return { ...verification, files }
    })
  } catch (error) {
    throw explainDatabaseError(path, error) ?? error
  } finally {
    source.close()
  }
}

/** Lets the new database own the files that stay. Those of a third database stay its own. */
function releaseFiles({ files }: DataFolders, id: string): void {
  const path = join(files, OWNER_KEY)
  try {
    // Of a link, the link itself.
    if (readFileSync(path, 'utf8').trim() === id) rmSync(path)
  } catch {
    // The data is moved. Without an owner, nothing is in the way; otherwise the start of the service says what to do.
  }
}

/** Throws while another process has the file open, and changes nothing in it. `exec` leaves no statement that keeps it open. */
function refuseUsed(path: string): void {
  try {
    withDatabase(path, BUSY_MS, (database) =>
      database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; ROLLBACK'),
    )
  } catch (error) {
    if (!isBusy(error)) throw explainDatabaseError(path, error) ?? error
    throw usageError(
      'A service works on this data.',
      'Stop it first, so that no run is lost. Then run the command again.',
    )
  }
}

async function copyRows(
  source: OpenDatabase,
  url: string,
  signal: AbortSignal | undefined,
): Promise<Verification> {
  await openSchema(url)
  const client = createClient(url)
  // The error also rejects the running statement.
  client.on('error', () => {})
  await client.connect()
  // Also ends a statement that waits for a lock.
  const forget = onAbort(signal, () => void client.end().catch(() => {}))
  try {
    await client.query('BEGIN; SET LOCAL search_path = rushes; LOCK TABLE accounts IN EXCLUSIVE MODE')
    if ((await client.query('SELECT 1 FROM accounts LIMIT 1')).rows.length > 0)
      throw usageError(
        `${nameOf(url)} already has the data of a service; nothing was changed.`,
        'Use an empty database, or drop its schema first: `DROP SCHEMA rushes CASCADE` removes everything in it.',
      )
    for (const { name } of source.all(TABLES)) await copyTable(source, client, String(name), signal)
    const copied = await verifyLedger(async (sql) => (await client.query(sql)).rows)
    refuseProblems(copied)
    forget()
    signal?.throwIfAborted()
    await client.query('COMMIT')
    return copied
  } catch (error) {
    signal?.throwIfAborted()
    throw error
  } finally {
    forget()
    await client.end().catch(() => {})
  }
}

/** In the order in which they were created: a row follows the rows that it refers to. */
const TABLES = `
  SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('format', 'sqlite_sequence') ORDER BY rowid`

/** The input of a run can have 0.8 MB. */
const PAGE_ROWS = 50

async function copyTable(
  source: OpenDatabase,
  client: Client,
  table: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const columns = source.all(`SELECT name, pk FROM pragma_table_info('${table}')`)
  const list = columns.map(({ name }) => name).join(', ')
  const page = (after: unknown): readonly Row[] =>
    source.all(
      `SELECT rowid AS row_number, ${list} FROM ${table} WHERE rowid > ?1 ORDER BY rowid LIMIT ${PAGE_ROWS}`,
      Number(after),
    )
  // The rows get the types of the table's columns.
  const insert = `INSERT INTO ${table} (${list}) SELECT ${list} FROM json_populate_recordset(null::${table}, $1)`
  for (let rows = page(-1); rows.length > 0; rows = page(rows.at(-1)?.row_number)) {
    signal?.throwIfAborted()
    await client.query(insert, [JSON.stringify(rows)])
  }
  // SQLite keeps the highest number that a table has given, also of a row that was removed.
  const last = source.get('SELECT seq FROM sqlite_sequence WHERE name = ?1', table)?.seq
  const key = columns.find(({ pk }) => pk === 1)?.name
  if (last !== undefined)
    await client.query('SELECT setval(pg_get_serial_sequence($1, $2), $3)', [table, key, last])
}

function refuseProblems({ problems: [problem] }: Verification): void {
  if (problem !== undefined)
    throw usageError(
      `The data has problems, so it was not moved: ${problem}`,
      'See all of them with `rushes admin verify --data <folder>`.',
    )
}

/** Copies the files under their keys, except those that the storage has. */
async function copyFiles(
  { files: folder }: DataFolders,
  { files: store }: Storage,
  signal: AbortSignal | undefined,
): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  for (const path of paths) {
    signal?.throwIfAborted()
    const key = relative(folder, path).split(sep).join('/')
    const { size } = await stat(path)
    if (key !== OWNER_KEY && (await store.find(key))?.bytes !== size)
      await store.put(key, { path }, { signal })
  }
  return paths.length
}
