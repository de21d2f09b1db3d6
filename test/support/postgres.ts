/** PostgreSQL for a test file: one server per process, started at the first use, and one database per test. */
import { describe, onTestFinished } from 'vitest'
import { type Clock, systemClock } from '../../src/host/clock.js'
import { openPostgresStore, type PostgresOptions } from '../../src/service/store/postgres/index.js'
import { hasPostgres, startPostgres, type TestPostgres } from './postgres-server.js'

export { canRestartPostgres, hasPostgres, startPostgres, type TestPostgres } from './postgres-server.js'

if (!hasPostgres)
  console.warn('PostgreSQL is not there (PG_URL, or test/engines): the tests that need it are skipped.')

/** Like `describe`. Skips the tests without PostgreSQL. */
export const describePostgres = describe.skipIf(!hasPostgres)

/** For stores whose connections may come late on a busy machine: its time does not pass, so retries do not run out. */
export const STILL_CLOCK: Clock = {
  ...systemClock,
  monotonic: () => 0,
}

/** Opens a store that closes when the test ends. */
export async function openTestStore(url: string, clock: PostgresOptions['clock'] = STILL_CLOCK) {
  const store = await openPostgresStore(url, { clock })
  onTestFinished(() => store.close())
  return store
}

let shared: Promise<TestPostgres> | undefined

/** Returns the server of this process. */
export function sharedPostgres(): Promise<TestPostgres> {
  shared ??= startPostgres()
  return shared
}

/** Creates a database on the shared server, and drops it when the test ends. Returns its URL. Call it within a test. */
export async function temporaryDatabase(): Promise<string> {
  const server = await sharedPostgres()
  const url = await server.createDatabase()
  onTestFinished(() => server.dropDatabase(url))
  return url
}
