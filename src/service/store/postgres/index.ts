/**
 * The store's contract on PostgreSQL, for several nodes on one database. Each function is one statement or one
 * transaction. The queue is the table of runs itself: a run is claimed in the same database as credits and leases.
 *
 *   driver.ts           the package `pg`, and the settings of a connection
 *   database.ts         statements and transactions on a pool, retried after a lost connection
 *   creates.ts          adds a run, and charges it
 *   node-connection.ts  the permanent connection: locks of workers, and notifications of queued runs
 *   open-schema.ts      creates the schema `rushes` at the first start
 */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../../../host/clock.js'
import { KINDS, type Kind } from '../../../protocol/models.js'
import { createPostgresRateLimiter } from '../../rate/postgres.js'
import type { RateLimiter } from '../../rate/rate-limiter.js'
import {
  type ClaimedRun,
  DatabaseUnavailable,
  type FailedRuns,
  type Store,
  type WorkerRecord,
} from '../contract.js'
import { modelUses } from '../model-use.js'
import { outputOfRow, type Row, runOfRow } from '../rows.js'
import { createAccountStore } from './accounts.js'
import { createConsoleStore, createUserStore } from './console.js'
import { createRunAdder } from './creates.js'
import { createDatabase, type Transaction } from './database.js'
import { createRetryWindow, hasNul, type PgValue } from './driver.js'
import { createFileRecords } from './files.js'
import { createNodeConnection } from './node-connection.js'
import { openSchema } from './open-schema.js'
import { SQL } from './run-statements.js'

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
  readonly clock?: Pick<Clock, 'monotonic' | 'sleep'> | undefined
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

const NO_FAILED_RUNS: FailedRuns = { runs: 0, refunded: 0 }

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
  const { get, all, run, transaction } = database
  const addRun = createRunAdder(database)

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
    notifying = run(SQL.notifyQueued, node)
      .catch(() => {})
      .finally(() => {
        notifying = undefined
        if (notifyAgain) announceQueued()
      })
  }

  /** Claims (by worker) and results (by run) whose response was lost, until their outcome is known. */
  const lostClaims = new Map<string, readonly string[]>()
  const lostResults = new Set<string>()

  async function claimNext(tx: Transaction, worker: string, ...values: readonly PgValue[]) {
    // Sends the statements without waiting, because none needs the result of an earlier one.
    const lock = tx.run(SQL.lockClaims)
    const lease = tx.run(SQL.holdLease, worker)
    const before = Promise.all([lock, lease])
    before.catch(() => {})
    try {
      const [row] = await tx.commitWith(SQL.claimRun, worker, ...values)
      return row && runOfRow(row)
    } catch (error) {
      // Throws the error of `lock` or `lease` if one failed: the error of the claim says only that the transaction was
      // aborted.
      await before
      throw error
    }
  }

  return {
    ...createAccountStore(database),
    ...createUserStore(database),
    ...createConsoleStore(pages),
    ...createFileRecords(database),

    async addRun(newRun, check) {
      const added = await addRun(newRun, check)
      announceQueued()
      return added
    },
    async findRun(id, accountId) {
      if (hasNul(id)) return undefined
      const row = await get(SQL.findRun, id, accountId)
      return row && runOfRow(row)
    },
    async claimRun({ worker, nowMs, models, preferred = [], claims = 'all', skippedAccounts = [] }) {
      const claim = randomUUID()
      const lost = lostClaims.get(worker) ?? []
      let stillLost: readonly string[] = []
      try {
        const claimed = await transaction(
          async (tx) => {
            const tokens = tx.mayHaveCommitted ? [...lost, claim] : lost
            if (tokens.length > 0) {
              await tx.run(SQL.lockClaims)
              const row = await tx.get(SQL.findClaimed, worker, tokens)
              stillLost = row === undefined ? [] : lost.filter((token) => token !== row.claim)
              if (row !== undefined) return runOfRow(row)
            }
            return await claimNext(tx, worker, nowMs, preferred, claims, claim, skippedAccounts, models)
          },
          { repeatable: true },
        )
        lostClaims.set(worker, stillLost)
        return claimed
      } catch (error) {
        // Keeps all lost claims, also any that this attempt found: its response was lost with this error.
        lostClaims.set(worker, [...lost, claim])
        throw error
      }
    },
    async finishRun({ id, owner, nowMs }: ClaimedRun, outputs) {
      const columns = (['token', 'name', 'contentType', 'bytes', 'sha256'] as const).map((column) =>
        outputs.map((output) => output[column]),
      ) as readonly (readonly string[])[]
      try {
        const isFinished = await transaction(
          async (tx) => {
            const [row] = await tx.commitWith(SQL.finishRun, id, owner, nowMs, ...columns)
            if (row !== undefined) return true
            if (!tx.mayHaveCommitted && !lostResults.has(id)) return false
            return (
              (await get(
                SQL.wasFinished,
                id,
                owner,
                outputs.map(({ token }) => token),
              )) !== undefined
            )
          },
          { repeatable: true },
        )
        lostResults.delete(id)
        return isFinished
      } catch (error) {
        if (error instanceof DatabaseUnavailable) lostResults.add(id)
        throw error
      }
    },
    failRun: async ({ id, owner, nowMs }, failure, { refunds } = { refunds: true }) =>
      failedRunsOf(await get(SQL.failRun, id, owner, nowMs, JSON.stringify(failure), refunds)),
    async recordCrash({ id, owner, nowMs }, { crashes, failure, refunds = true }) {
      const moved = failedRunsOf(
        await get(SQL.recordCrash, owner, id, crashes, JSON.stringify(failure), nowMs, refunds),
      )
      if (moved !== undefined) announceQueued()
      return moved
    },
    async findOutput(token, name) {
      if (hasNul(token, name)) return undefined
      const row = await get(SQL.findOutput, token, name)
      return row && outputOfRow(row)
    },
    async queueLengths() {
      const row = await get(SQL.queueLengths)
      return Object.fromEntries(KINDS.map((kind) => [kind, Number(row?.[kind])])) as Record<Kind, number>
    },

    async listModels() {
      const [counts, workers] = await Promise.all([all(SQL.countUnfinished), all(SQL.listCarried)])
      return modelUses(
        counts,
        workers.filter(({ isDisconnected }) => isDisconnected !== true),
      )
    },

    renewLease: connection.addWorker,
    extendLease: connection.extendLease,
    listWorkers: async () => (await all(SQL.listWorkers)).map(workerOfRow),
    reapWorker: ({ id, heartbeatAtMs }, { crashes, failure, refunds = true }, nowMs) =>
      transaction(
        async (tx) => {
          // Waits until a claim of this worker that is being committed has ended.
          if ((await tx.run(SQL.removeExpiredWorker, id, heartbeatAtMs)) === 0) return undefined
          const values = [crashes, JSON.stringify(failure), nowMs, refunds]
          const row = await tx.get(SQL.recordCrash, id, null, ...values)
          return failedRunsOf(row) ?? NO_FAILED_RUNS
        },
        { repeatable: true },
      ),
    async releaseWorker(id, nowMs) {
      await transaction(
        async (tx) => {
          await tx.run(SQL.removeWorker, id)
          await tx.run(SQL.requeueRuns, id, nowMs)
        },
        { repeatable: true },
      )
      await connection.forgetWorker(id).catch(() => {})
      announceQueued()
    },
    onQueued: connection.onQueued,

    async checkWritable() {
      await Promise.all([run(SQL.writeNothing), connection.check()])
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

/** `isDisconnected` does not end a lease, because a running process can lose its connection. */
const workerOfRow = (row: Row): WorkerRecord => ({
  id: String(row.id),
  heartbeatAtMs: Number(row.heartbeat_at),
  hasEnded: false,
  isDisconnected: row.isDisconnected === true,
})

/** Returns undefined if no run was moved. */
const failedRunsOf = (row: Row | undefined): FailedRuns | undefined =>
  row === undefined || row.moved === 0
    ? undefined
    : { runs: Number(row.runs), refunded: Number(row.refunded) }
