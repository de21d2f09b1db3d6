/**
 * The store on PostgreSQL, for several nodes on one database. The queue is the table of runs itself: a run is claimed in
 * the same database as credits and leases.
 *
 *   database.ts     the package `pg`; statements and transactions on a pool, retried after a lost connection
 *   open-schema.ts  creates the schema `rushes` at the first start
 */
import type { Clock } from '../../../host/clock.js'
import { createStore, type Store } from '../index.js'
import { DatabaseRetry } from '../sql.js'
import { createDatabase } from './database.js'
import { openSchema } from './open-schema.js'
import { createPostgresRateLimiter } from './rates.js'

const MAX_CONNECTIONS = 10
/**
 * Connections of a separate pool for pages, lists and sums, so that these take no connection from creates and status
 * requests.
 */
const PAGE_CONNECTIONS = 2
const PAGE_TIMEOUT_MS = 2_000

export interface PostgresOptions {
  /** Whether to create the schema of a service if the database has none. Default: true. */
  readonly make?: boolean
  /** Connections of the pool. A node with a console uses two more. Default: 10. */
  readonly maxConnections?: number | undefined
  readonly clock?: Clock | undefined
}

/**
 * Throws `RushesError` (usage) if the database cannot be reached or used, or was written by another version of
 * `rushes`.
 */
export async function openPostgresStore(
  url: string,
  { make = true, maxConnections = MAX_CONNECTIONS, clock }: PostgresOptions = {},
): Promise<Store> {
  await openSchema(url, { make })
  const retry = new DatabaseRetry(clock)
  const database = createDatabase({ url, maxConnections, retry })
  const limits = { maxConnections: PAGE_CONNECTIONS, statementTimeoutMs: PAGE_TIMEOUT_MS }
  const pages = createDatabase({ url, retry, ...limits })
  return createStore({
    database,
    pages,
    // A restored dump is another database.
    identity: async () => String((await database.get(IDENTITY))?.identity),
    rateLimiter: createPostgresRateLimiter(database, clock),
    stopWaiting: () => retry.stop(),
    async close() {
      retry.stop()
      await Promise.all([pages.close(), database.close()])
    },
  })
}

const IDENTITY = `
  SELECT (SELECT system_identifier FROM pg_control_system()) || '.' || oid AS identity
  FROM pg_database WHERE datname = current_database()`
