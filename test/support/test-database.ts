/**
 * Database of the services in tests: SQLite, or PostgreSQL in the project `postgres` of `npm run test:system`. There,
 * each data folder has a separate database on one server for all files.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { inject } from 'vitest'
import { openDatabase, type Row } from '../../src/host/database.js'
import type { Store } from '../../src/service/store/index.js'
import { openSqliteStore, SQLITE_SCRIPTS } from '../../src/service/store/sqlite/index.js'
import { whenOver } from './after-file.js'

/** Set by `postgres-for-all.ts`. */
const server = inject('postgresUrl')

/** Imported on demand, like all code that uses `pg`: only PostgreSQL needs it. */
const control = async (url: string) => (await import('./postgres-server.js')).postgresAt(url)

/**
 * Whether services use PostgreSQL. Their data folders then have no `service.db`, and tests of that file are skipped.
 */
export const usesPostgres = server !== undefined

/** Location of a service's data. */
export interface TestData {
  readonly dataFolder: string
  readonly databaseUrl: string | undefined
}

const urls = new Map<string, Promise<string>>()

/**
 * Creates the database of a data folder, and drops it at the end of the test or file. Undefined with SQLite. Call it
 * within a test or `beforeAll`.
 */
export async function databaseUrlOf(dataFolder: string): Promise<string | undefined> {
  if (server === undefined) return undefined
  const known = urls.get(dataFolder)
  if (known !== undefined) return await known
  const created = control(server).then((postgres) => postgres.createDatabase())
  urls.set(dataFolder, created)
  whenOver(async () => {
    urls.delete(dataFolder)
    await (await control(server)).dropDatabase(await created)
  })
  return await created
}

/** Opens another store on the database of a service. */
export async function openStoreOf({ dataFolder, databaseUrl }: TestData): Promise<Store> {
  if (databaseUrl === undefined) return openSqliteStore(join(dataFolder, 'service.db'))
  const { openPostgresStore } = await import('../../src/service/store/postgres/index.js')
  return await openPostgresStore(databaseUrl, { maxConnections: 1 })
}

/** Returns the flag that selects the database on a command line. */
export const dataWords = ({ dataFolder, databaseUrl }: TestData): readonly [flag: string, value: string] =>
  databaseUrl === undefined ? ['--data', dataFolder] : ['--database', databaseUrl]

/** Returns all data in the database of a service, as text that can be searched. */
export async function storedText({ dataFolder, databaseUrl }: TestData): Promise<string> {
  if (databaseUrl === undefined)
    return ['service.db', 'service.db-wal']
      .map((name) => readFileSync(join(dataFolder, name), 'latin1'))
      .join()
  const [row] = await runSql(
    { dataFolder, databaseUrl },
    `SELECT schema_to_xml('rushes', true, false, '') AS text`,
  )
  return String(row?.text)
}

/** Runs statements in the database of a service, without its knowledge. Returns the rows of the last statement. */
export async function runSql(
  { dataFolder, databaseUrl }: TestData,
  ...statements: readonly string[]
): Promise<readonly Row[]> {
  let rows: readonly Row[] = []
  if (databaseUrl === undefined) {
    const database = openDatabase({ path: join(dataFolder, 'service.db'), migrations: SQLITE_SCRIPTS })
    for (const statement of statements) rows = database.all(statement)
    database.close()
  } else {
    const { default: pg } = await import('pg')
    const client = new pg.Client({ connectionString: databaseUrl, options: '-c search_path=rushes' })
    await client.connect()
    for (const statement of statements) ({ rows } = await client.query(statement))
    await client.end()
  }
  return rows
}
