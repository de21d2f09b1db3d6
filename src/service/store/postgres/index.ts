/**
 * The store on PostgreSQL, for several nodes on one database. The queue is the table of runs itself: a run is claimed in
 * the same database as credits and leases.
 *
 *   driver.ts       the package `pg`, and the settings of a connection
 *   database.ts     statements and transactions on a pool, retried after a lost connection
 *   open-schema.ts  creates the schema `rushes` at the first start
 */
import type { Clock } from '../../../host/clock.js'
import { createOwnedSlots } from '../../../host/slots.js'
import type { RateLimiter } from '../../rules/rate.js'
import { DatabaseUnavailable, type Store } from '../contract.js'
import { createStore } from '../index.js'
import { createRetryWindow, type RetryWindow } from '../retry-window.js'
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

export interface PostgresStore extends Store {
  /** Counts the requests of all nodes on this database together. */
  readonly rateLimiter: RateLimiter
  /** Called when the service closes: a change that still waits for a connection then fails in time for the close. */
  stopWaiting(): void
}

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
export async function openPostgresStore(url: string, options: PostgresOptions = {}): Promise<PostgresStore> {
  const { make = true, ...others } = options
  await openSchema(url, { make })
  return storeAt(url, others)
}

function storeAt(url: string, { maxConnections = MAX_CONNECTIONS, clock }: PostgresOptions): PostgresStore {
  const retryWindow = createRetryWindow(clock)
  const database = createDatabase({ url, maxConnections, retryWindow })
  const pages = createDatabase({
    url,
    maxConnections: PAGE_CONNECTIONS,
    statementTimeoutMs: PAGE_TIMEOUT_MS,
    retryWindow,
  })
  const store = createStore(database, pages)
  const inTurn = createAccountTurns(retryWindow)
  return {
    ...store,
    addRun: (run, check) => inTurn(run.accountId, () => store.addRun(run, check)),
    // A restored dump is another database.
    databaseId: async () => `${await store.databaseId()}.${(await database.get(IDENTITY))?.identity}`,
    rateLimiter: createPostgresRateLimiter(database, clock),
    stopWaiting: retryWindow.stop,
    async close() {
      retryWindow.stop()
      await Promise.all([pages.close(), database.close()])
    },
  }
}

const IDENTITY = `
  SELECT (SELECT system_identifier FROM pg_control_system()) || '.' || oid AS identity
  FROM pg_database WHERE datname = current_database()`

/**
 * Maximum number of creates of one account that use a connection. Creates of one account wait for each other in the
 * database, so more of them would take connections from other accounts, and make no run sooner.
 */
const CREATES_PER_ACCOUNT = 2

/** Returns a function that calls `create` in the turn of the account, or rejects if that is after 5 s. */
function createAccountTurns({ clock, pauseMs }: RetryWindow) {
  const inSlot = createOwnedSlots(CREATES_PER_ACCOUNT, {})
  return <Result>(accountId: number, create: () => Promise<Result>): Promise<Result> => {
    const startedMs = clock.monotonic()
    return inSlot(accountId, async () => {
      if (pauseMs(startedMs, 1) === undefined)
        throw new DatabaseUnavailable(new Error('earlier creates of this account wait for the database'))
      return await create()
    })
  }
}
