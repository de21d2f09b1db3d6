/**
 * The store's contract on PostgreSQL, for several nodes on one database. Each function is one statement or one transaction. The
 * row of a run is the job: it is claimed in the same database as money and leases.
 *
 *   driver.ts      the package `pg`, and the settings of a connection
 *   database.ts    statements and transactions on a pool, which outlive lost connections
 *   creates.ts     creates of one account that wait together share a transaction
 *   connection.ts     one connection that stays: locks of workers, and who hears of queued runs
 *   open-schema.ts the schema `rushes`, created and migrated at the start
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
/** Of a pool for pages, lists and sums, so that these take no connection from creates and status requests. */
const PAGE_CONNECTIONS = 2
const PAGE_TIMEOUT_MS = 2_000

export interface PostgresStore extends Store {
  readonly onQueued: NonNullable<Store['onQueued']>
  /** Counts the requests of all nodes on this database together. */
  readonly rateLimiter: RateLimiter
  /** From now on a change that waits for a connection gives up in time for the service to close. */
  stopWaiting(): void
}

export interface PostgresOptions {
  /** Whether to create the data of a service in a database without any; by default it does. */
  readonly make?: boolean
  /** Connections of the pool; a node with workers has one more, and one with a console two. By default 10. */
  readonly maxConnections?: number | undefined
  readonly clock?: Pick<Clock, 'monotonic' | 'sleep'> | undefined
}

/** Throws `RushesError` (usage) when the database cannot be reached or used, or is of a later version of `rushes`. */
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
   * Wakes the workers of other nodes: after the commit, since a notification in a transaction makes all commits wait for each
   * other; and one for all runs that are queued while one is sent. When it is lost, they look once a second.
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

  /** Claims and results whose answers were lost, until their outcome is known. */
  const lostClaims = new Map<string, readonly string[]>()
  const lostResults = new Set<string>()

  async function claimNext(tx: Transaction, worker: string, ...values: readonly PgValue[]) {
    // Sent together: none of them needs what the one before answers.
    const lock = tx.run(SQL.lockClaims)
    const lease = tx.run(SQL.holdLease, worker)
    const before = Promise.all([lock, lease])
    before.catch(() => {})
    try {
      const [row] = await tx.commitWith(SQL.claimRun, worker, ...values)
      return row && runOfRow(row)
    } catch (error) {
      // Their error is the reason; the claim's own says only that the transaction was aborted.
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
    async claimRun(worker, preferred, nowMs, claims = 'all', skippedAccounts = []) {
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
            return await claimNext(tx, worker, nowMs, preferred, claims, claim, skippedAccounts)
          },
          { repeatable: true },
        )
        lostClaims.set(worker, stillLost)
        return claimed
      } catch (error) {
        // Those that were found too: their answers were lost with this error.
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

    renewLease: connection.addWorker,
    extendLease: connection.extendLease,
    listWorkers: async () => (await all(SQL.listWorkers)).map(workerOfRow),
    reapWorker: ({ id, heartbeatAtMs }, { crashes, failure, refunds = true }, nowMs) =>
      transaction(
        async (tx) => {
          // Waits for a claim of this worker that is being committed.
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

/** A connection that ended may be that of a living process: `isDisconnected` alone ends no lease. */
const workerOfRow = (row: Row): WorkerRecord => ({
  id: String(row.id),
  heartbeatAtMs: Number(row.heartbeat_at),
  hasEnded: false,
  isDisconnected: row.isDisconnected === true,
})

/** Undefined when no run was moved. */
const failedRunsOf = (row: Row | undefined): FailedRuns | undefined =>
  row === undefined || row.moved === 0
    ? undefined
    : { runs: Number(row.runs), refunded: Number(row.refunded) }
