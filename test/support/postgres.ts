/** PostgreSQL in a test file: one server for its process, started at the first use, and a database for each test. */
import { describe, onTestFinished } from 'vitest'
import { hasPostgres, startPostgres, type TestPostgres } from './postgres-server.js'

export { canRestartPostgres, hasPostgres, startPostgres, type TestPostgres } from './postgres-server.js'

if (!hasPostgres)
  console.warn('PostgreSQL is not there (PG_URL, or test/engines): the tests that need it are skipped.')

/** `describe`, skipped where there is no PostgreSQL. */
export const describePostgres = describe.skipIf(!hasPostgres)

let shared: Promise<TestPostgres> | undefined

/** The server of this process. */
export function sharedPostgres(): Promise<TestPostgres> {
  shared ??= startPostgres()
  return shared
}

/** Call within a test: a new database on the shared server, dropped when the test has ended; its URL. */
export async function temporaryDatabase(): Promise<string> {
  const server = await sharedPostgres()
  const url = await server.createDatabase()
  onTestFinished(() => server.dropDatabase(url))
  return url
}
