/**
 * Which database the services of the tests have: SQLite, or PostgreSQL in the project `postgres` of `npm run test:system`, where
 * each data folder has a database on one server for all files.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { inject } from 'vitest'
import { openDatabase, type Row } from '../../src/host/database.js'
import type { Store } from '../../src/service/store/contract.js'
import { openSqliteStore } from '../../src/service/store/sqlite/index.js'
import { SQLITE_MIGRATIONS } from '../../src/service/store/sqlite/migrations.js'
import { whenOver } from './after-file.js'

/** Set by `postgres-for-all.ts`. */
const server = inject('postgresUrl')

/** Loaded for PostgreSQL alone, like everything of `pg`. */
const control = async (url: string) => (await import('./postgres-server.js')).postgresAt(url)

/** Then a data folder has no `service.db`, and tests of that file are skipped. */
export const usesPostgres = server !== undefined

/** What a service is given. */
export interface TestData {
  readonly dataFolder: string
  readonly databaseUrl: string | undefined
}

const urls = new Map<string, Promise<string>>()

/** Call within a test or `beforeAll`: the database of a data folder, which is dropped at the end of it. Undefined on SQLite. */
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

/** The store of a service, beside it. */
export async function openStoreOf({ dataFolder, databaseUrl }: TestData): Promise<Store> {
  if (databaseUrl === undefined) return openSqliteStore(join(dataFolder, 'service.db'))
  const { openPostgresStore } = await import('../../src/service/store/postgres/index.js')
  return await openPostgresStore(databaseUrl, { maxConnections: 1 })
}

/** For the command line. */
export const dataWords = ({ dataFolder, databaseUrl }: TestData): readonly [flag: string, value: string] =>
  databaseUrl === undefined ? ['--data', dataFolder] : ['--database', databaseUrl]

/** Everything that the database of a service holds, as text that can be searched. */
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

/** Runs statements in the database of a service, behind its back; the rows of the last. */
export async function runSql(
  { dataFolder, databaseUrl }: TestData,
  ...statements: readonly string[]
): Promise<readonly Row[]> {
  let rows: readonly Row[] = []
  if (databaseUrl === undefined) {
    const database = openDatabase({ path: join(dataFolder, 'service.db'), migrations: SQLITE_MIGRATIONS })
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
