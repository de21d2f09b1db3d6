/**
 * The store on PostgreSQL, for several nodes on one database. The queue is the table of runs itself: a run is claimed in
 * the same database as credits and leases.
 *
 *   driver.ts           the package `pg`, and the settings of a connection
 *   database.ts         statements and transactions on a pool, retried after a lost connection
 *   node-connection.ts  the permanent connection: locks of workers, and notifications of queued runs
 *   open-schema.ts      creates the schema `rushes` at the first start
 */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../../../host/clock.js'
import { createOwnedSlots } from '../../../host/slots.js'
import { createPostgresRateLimiter } from '../../rate/postgres.js'
import type { RateLimiter } from '../../rate/rate-limiter.js'
import { observed } from '../calls.js'
import { DatabaseUnavailable, type Store, type WorkerRecord } from '../contract.js'
import { createStore } from '../index.js'
import type { LeaseStore } from '../queue.js'
import type { Row } from '../sql.js'
import { createDatabase } from './database.js'
import { createRetryWindow, type RetryWindow } from './driver.js'
import { createNodeConnection, LIST_WORKERS } from './node-connection.js'
import { openSchema } from './open-schema.js'

const MAX_CONNECTIONS = 10
/**
 * Connections of a separate pool for pages, lists and sums, so that these take no connection from creates and status
 * requests.
 */
const PAGE_CONNECTIONS = 2
const PAGE_TIMEOUT_MS = 2_000

export interface PostgresStore extends Store {
  readonly onQueued: NonNullable<Store['onQueued']>
  /** Counts the requests of all nodes on this database together. */
  readonly rateLimiter: RateLimiter
  /** Called when the service closes: a change that still waits for a connection then fails in time for the close. */
  stopWaiting(): void
}

export interface PostgresOptions {
  /** Whether to create the schema of a service if the database has none. Default: true. */
  readonly make?: boolean
  /** Connections of the pool. A node with workers uses one more, and a node with a console two more. Default: 10. */
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
  const node = randomUUID()
  const retryWindow = createRetryWindow(clock)
  const database = createDatabase({ url, maxConnections, retryWindow })
  const pages = createDatabase({
    url,
    maxConnections: PAGE_CONNECTIONS,
    statementTimeoutMs: PAGE_TIMEOUT_MS,
    retryWindow,
  })
  const connection = createNodeConnection({ url, node, retryWindow })
  const leases: LeaseStore = {
    renewLease: connection.addWorker,
    extendLease: connection.extendLease,
    listWorkers: async () => (await database.all(LIST_WORKERS)).map(workerOfRow),
    forget: (id) => connection.forgetWorker(id).catch(() => {}),
  }
  const opened = createStore(database, leases, pages)
  const inTurn = createAccountTurns(retryWindow)
  const store: typeof opened = {
    ...opened,
    addRun: (run, check) => inTurn(run.accountId, () => opened.addRun(run, check)),
  }

  let notifying: Promise<unknown> | undefined
  let notifyAgain = false
  /**
   * Notifies the workers of other nodes. Sent after the commit, because a notification in a transaction makes all
   * commits wait for each other. All runs that are queued while a notification is sent share the next one. If a
   * notification is lost, workers find the run when they poll the queue, once a second.
   */
  function announceQueued(): void {
    notifyAgain = notifying !== undefined
    if (notifyAgain) return
    notifying = database
      .run(NOTIFY_QUEUED, node)
      .catch(() => {})
      .finally(() => {
        notifying = undefined
        if (notifyAgain) announceQueued()
      })
  }

  return {
    // The methods that may have queued a run.
    ...observed(store, {
      addRun: announceQueued,
      recordCrash: announceQueued,
      reapWorker: announceQueued,
      releaseWorker: announceQueued,
    }),
    onQueued: connection.onQueued,
    async checkWritable() {
      await Promise.all([store.checkWritable(), connection.check()])
    },
    rateLimiter: createPostgresRateLimiter(database, clock),
    stopWaiting: retryWindow.stop,
    async close() {
      retryWindow.stop()
      await notifying
      await connection.close()
      await Promise.all([pages.close(), database.close()])
    },
  }
}

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

const NOTIFY_QUEUED = `SELECT pg_notify('rushes_queued', $1)`

/** `isDisconnected` does not end a lease, because a running process can lose its connection. */
const workerOfRow = (row: Row): WorkerRecord => ({
  id: String(row.id),
  heartbeatAtMs: Number(row.heartbeat_at),
  hasEnded: false,
  isDisconnected: row.isDisconnected === true,
})
