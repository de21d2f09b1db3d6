/** The queue: claims of workers, their leases, and what becomes of the runs of a worker that has ended. */
import { KINDS, type Kind } from '../../protocol/models.js'
import type { CrashLimit, FailedRuns, Store } from './contract.js'
import { countUnfinishedSql, modelUses } from './model-use.js'
import { jobOf, RUN_COLUMNS, runOfRow } from './rows.js'
import { createFailure } from './runs.js'
import type { Database, Dialect, Row, Transaction } from './sql.js'

/** The first queued run of the model from this account on: one lookup in the index. */
const firstFrom = ({ index }: Dialect, model: string, account: string): string => `(
        SELECT sequence FROM runs${index('runs_queued')}
        WHERE status = 'queued' AND (model, account_id) >= (${model}, ${account})
        ORDER BY model, account_id, sequence LIMIT 1
      )`

export const queueStatements = (dialect: Dialect) => ({
  // Keeps a process that reaps this worker waiting until the claim is committed, so that it finds the run.
  holdLease: `SELECT 1 FROM workers WHERE id = $1${dialect.lockShared}`,

  // `heads` has the oldest run of each account for each model of the worker, by one index lookup each. Then the account
  // with the fewest runs in processing comes first, and of several the one that was served longest ago.
  nextRun: `
    WITH RECURSIVE heads (model, account_id, sequence) AS (
      SELECT first.model, first.account_id, first.sequence
      FROM ${dialect.list('$1', 'wanted')} CROSS JOIN runs AS first
      WHERE first.sequence = ${firstFrom(dialect, 'wanted.value', '0')} AND first.model = wanted.value
      UNION ALL
      SELECT next.model, next.account_id, next.sequence
      FROM heads CROSS JOIN runs AS next
      WHERE next.sequence = ${firstFrom(dialect, 'heads.model', 'heads.account_id + 1')} AND next.model = heads.model
    )
    SELECT oldest.sequence, oldest.account_id
    FROM (SELECT account_id, min(sequence) AS sequence FROM heads GROUP BY account_id) AS oldest
    LEFT JOIN (
      SELECT account_id, count(*) AS runs FROM runs${dialect.index('runs_rendering')}
      WHERE status = 'processing' GROUP BY account_id
    ) AS busy ON busy.account_id = oldest.account_id
    LEFT JOIN turns ON turns.account_id = oldest.account_id
    ORDER BY coalesce(busy.runs, 0), coalesce(turns.served, 0), oldest.sequence
    LIMIT 1`,

  nextOfThese: `
    SELECT sequence, account_id FROM runs
    WHERE id ${dialect.inList('$2')} AND status = 'queued' AND model ${dialect.inList('$1')}
    ORDER BY sequence LIMIT 1`,

  claim: `
    UPDATE runs SET status = 'processing', owner = $2, started_at = $3
    WHERE sequence = $1 AND status = 'queued'
    RETURNING ${RUN_COLUMNS}, job`,

  takeTurn: `
    INSERT INTO turns (account_id, served)
    SELECT CAST($1 AS bigint), coalesce(max(served), 0) + 1 FROM turns WHERE true
    ON CONFLICT (account_id) DO UPDATE SET served = excluded.served`,

  owned: `SELECT id FROM runs WHERE owner = $1 AND status = 'processing'`,

  lockOwned: `
    SELECT id, account_id, key_id, price, attempts, started_at, job FROM runs
    WHERE owner = $1 AND status = 'processing'${dialect.lock()}`,

  requeue: `
    UPDATE runs SET status = 'queued', owner = '', started_at = NULL, attempts = $2
    WHERE id = $1 AND status = 'processing'`,

  countAttempt: `UPDATE runs SET attempts = $2 WHERE id = $1`,

  addLostAttempt: `INSERT INTO lost_attempts (run_id, started_at, ended_at, result) VALUES ($1, $2, $3, $4)`,

  // Scans the index runs_queued once, which contains the kind: 10–17 ms for 100,000 queued runs. GROUP BY would sort,
  // and take three times as long.
  queueLengths: `
    SELECT count(*) FILTER (WHERE kind = 'video') AS video, count(*) FILTER (WHERE kind = 'image') AS image
    FROM runs${dialect.index('runs_queued')} WHERE status = 'queued'`,

  countUnfinished: countUnfinishedSql(
    `runs${dialect.index('runs_queued')}`,
    `runs${dialect.index('runs_rendering')}`,
  ),

  listCarried: `SELECT id, models FROM workers`,

  removeExpiredWorker: `DELETE FROM workers WHERE id = $1 AND heartbeat_at = $2`,

  removeWorker: `DELETE FROM workers WHERE id = $1`,
})

type QueueStore = Pick<
  Store,
  'claimRun' | 'returnRuns' | 'recordCrash' | 'queueLengths' | 'listModels' | 'reapWorker' | 'releaseWorker'
>

/** The leases of workers, which each database proves in its own way. */
export type LeaseStore = Pick<Store, 'renewLease' | 'extendLease' | 'listWorkers'> & {
  /** Ids of the workers that have not ended. */
  listLive(): Promise<readonly string[]>
  /** Forgets a worker whose row is removed. */
  forget(id: string): Promise<void>
}

/** Crashes of workers that follow one job: its outputs may be the reason. */
const MAX_CRASHES_OF_JOB = 20

export function createQueueStore(database: Database, leases: LeaseStore): QueueStore {
  const { get, all, transaction, dialect } = database
  const SQL = queueStatements(dialect)
  const fail = createFailure(dialect)

  async function returnRun(tx: Transaction, row: Row, nowMs: number, result: 'crashed' | 'returned') {
    const [id, attempts] = [String(row.id), Number(row.attempts) + (result === 'crashed' ? 1 : 0)]
    await tx.run(SQL.addLostAttempt, id, Number(row.started_at), nowMs, result)
    await tx.run(SQL.requeue, id, attempts)
  }

  /** Returns locked runs to the queue, or fails and refunds those that have reached the limit. */
  async function recordCrashes(
    tx: Transaction,
    rows: readonly Row[],
    { crashes, failure }: CrashLimit,
    nowMs: number,
  ): Promise<FailedRuns> {
    // To follow a job again is harmless. To give it up loses a paid result.
    const limitOf = ({ job }: Row) => (job === null || job === '{}' ? crashes : MAX_CRASHES_OF_JOB)
    const isLast = (row: Row) => Number(row.attempts) + 1 >= limitOf(row)
    for (const row of rows) {
      if (isLast(row)) await tx.run(SQL.countAttempt, String(row.id), Number(row.attempts) + 1)
      else await returnRun(tx, row, nowMs, 'crashed')
    }
    return await fail(tx, rows.filter(isLast), failure, nowMs)
  }

  return {
    claimRun: ({ worker, nowMs, models, only }) =>
      transaction(
        async (tx) => {
          // Sends the statements at once. Each sees all earlier commits.
          const [, lease, next] = await Promise.all([
            dialect.lockClaims === undefined ? undefined : tx.get(dialect.lockClaims),
            tx.get(SQL.holdLease, worker),
            only === undefined ? tx.get(SQL.nextRun, models) : tx.get(SQL.nextOfThese, models, only),
          ])
          if (lease === undefined || next === undefined) return undefined
          const [row] = await Promise.all([
            tx.get(SQL.claim, Number(next.sequence), worker, nowMs),
            tx.run(SQL.takeTurn, Number(next.account_id)),
          ])
          return row && { ...runOfRow(row, []), job: jobOf(row.job) }
        },
        { repeatable: true },
      ),
    async returnRuns(worker, kept, nowMs) {
      const isLost = ({ id }: Row) => !kept.includes(String(id))
      if (!(await all(SQL.owned, worker)).some(isLost)) return
      await transaction(
        async (tx) => {
          for (const row of (await tx.all(SQL.lockOwned, worker)).filter(isLost))
            await returnRun(tx, row, nowMs, 'returned')
        },
        { repeatable: true },
      )
    },
    recordCrash: ({ id, owner, nowMs }, limit) =>
      transaction(
        async (tx) => {
          const rows = (await tx.all(SQL.lockOwned, owner)).filter((row) => row.id === id)
          return rows.length === 0 ? undefined : await recordCrashes(tx, rows, limit, nowMs)
        },
        { repeatable: true },
      ),
    async queueLengths() {
      const row = await get(SQL.queueLengths)
      return Object.fromEntries(KINDS.map((kind) => [kind, Number(row?.[kind])])) as Record<Kind, number>
    },
    async listModels() {
      const live = await leases.listLive()
      const workers = (await all(SQL.listCarried)).filter(({ id }) => live.includes(String(id)))
      return modelUses(await all(SQL.countUnfinished), workers)
    },
    async reapWorker({ id, heartbeatAtMs }, limit, nowMs) {
      const failed = await transaction(
        async (tx) => {
          // Waits until a claim of this worker that is being committed has ended.
          if ((await tx.run(SQL.removeExpiredWorker, id, heartbeatAtMs)) === 0) return undefined
          return await recordCrashes(tx, await tx.all(SQL.lockOwned, id), limit, nowMs)
        },
        { repeatable: true },
      )
      if (failed !== undefined) await leases.forget(id)
      return failed
    },
    async releaseWorker(id, nowMs) {
      await transaction(
        async (tx) => {
          await tx.run(SQL.removeWorker, id)
          for (const row of await tx.all(SQL.lockOwned, id)) await returnRun(tx, row, nowMs, 'returned')
        },
        { repeatable: true },
      )
      await leases.forget(id)
    },
  }
}
