/** The queue: claims of workers, their leases, and what becomes of the runs of a worker that has ended. */
import { KINDS, type Kind } from '../../protocol/models.js'
import type { CrashLimit, FailedRuns, Store, WorkerStore } from './contract.js'
import { hasJob, jobOf, RUN_COLUMNS, runOfRow } from './rows.js'
import { createFailure } from './runs.js'
import { type Database, type Dialect, type Row, repeatable, type Transaction } from './sql.js'

/**
 * Number of pairs of model and account that a claim compares, besides one per model. In a longer queue, these are the
 * accounts that follow the last served account by their number, so that each has its turn.
 */
const MAX_COMPARED = 250

/** The first account after this one that has queued runs of the model, and after the last account the first one again. */
const nextAccount = ({ index }: Dialect, model: string, account: string): string => {
  const first = `SELECT min(account_id) FROM runs${index('runs_queued')} WHERE status = 'queued' AND model = ${model}`
  return `coalesce((${first} AND account_id > ${account}), (${first}))`
}

const oldestOf = ({ index }: Dialect, model: string, account: string): string => `(
        SELECT min(sequence) FROM runs${index('runs_queued')}
        WHERE status = 'queued' AND model = ${model} AND runs.account_id = ${account}
      )`

/** Runs of the same pool use the same slots: each separate model has a pool, and all other models have one. */
const poolOf = ({ inList }: Dialect, model: string): string =>
  `CASE WHEN ${model} ${inList('$3')} THEN ${model} ELSE '' END`

export const queueStatements = (dialect: Dialect) => ({
  // Keeps a process that reaps this worker waiting until the claim is committed, so that it finds the run.
  holdLease: `SELECT 1 FROM workers WHERE id = $1${dialect.lockShared}`,

  // `front` has the accounts of each model of the worker, by one index lookup each. It ends where it meets an account again.
  // Of these accounts, the one with the fewest runs in processing in the pool comes first, then the one served longest ago.
  // Of several that were never served, it is the one with the oldest run.
  nextRun: `
    WITH RECURSIVE front (model, account_id) AS (
      SELECT wanted.value, ${nextAccount(dialect, 'wanted.value', 'last.account_id')}
      FROM ${dialect.list('$1', 'wanted')} CROSS JOIN (
        SELECT coalesce((SELECT account_id FROM turns ORDER BY served DESC LIMIT 1), 0) AS account_id
      ) AS last
      UNION
      SELECT model, ${nextAccount(dialect, 'front.model', 'front.account_id')}
      FROM front WHERE account_id IS NOT NULL
    ),
    compared AS (SELECT model, account_id FROM front WHERE account_id IS NOT NULL LIMIT $2),
    chosen AS (
      SELECT compared.account_id, ${poolOf(dialect, 'compared.model')} AS pool
      FROM compared
      LEFT JOIN (
        SELECT account_id, ${poolOf(dialect, 'model')} AS pool, count(*) AS runs
        FROM runs${dialect.index('runs_rendering')}
        WHERE status = 'processing' GROUP BY 1, 2
      ) AS busy ON busy.account_id = compared.account_id AND busy.pool = ${poolOf(dialect, 'compared.model')}
      LEFT JOIN turns ON turns.account_id = compared.account_id
      ORDER BY coalesce(busy.runs, 0), coalesce(turns.served, 0),
        CASE WHEN turns.served IS NULL THEN ${oldestOf(dialect, 'compared.model', 'compared.account_id')} END
      LIMIT 1
    )
    SELECT chosen.account_id, min(${oldestOf(dialect, 'wanted.value', 'chosen.account_id')}) AS sequence
    FROM chosen CROSS JOIN ${dialect.list('$1', 'wanted')}
    WHERE ${poolOf(dialect, 'wanted.value')} = chosen.pool GROUP BY chosen.account_id`,

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

  // Scans the index runs_queued once, which contains the kind: 10–17 ms for 100,000 queued runs. GROUP BY would sort,
  // and take three times as long.
  queueLengths: `
    SELECT count(*) FILTER (WHERE kind = 'video') AS video, count(*) FILTER (WHERE kind = 'image') AS image
    FROM runs${dialect.index('runs_queued')} WHERE status = 'queued'`,

  removeExpiredWorker: `DELETE FROM workers WHERE id = $1 AND heartbeat_at = $2`,

  removeWorker: `DELETE FROM workers WHERE id = $1`,
})

/** The leases of workers, which each database proves in its own way. */
export type LeaseStore = Pick<WorkerStore, 'renewLease' | 'extendLease' | 'listWorkers'> & {
  /** Forgets a worker whose row is removed. */
  forget(id: string): Promise<void>
}

/** Crashes of workers that follow one job: its outputs may be the reason. */
const MAX_CRASHES_OF_JOB = 20

export function createQueueStore(database: Database, leases: LeaseStore) {
  const { get, all, dialect } = database
  const SQL = queueStatements(dialect)
  const fail = createFailure(dialect)

  const requeue = (tx: Transaction, row: Row, attempts = Number(row.attempts)) =>
    tx.run(SQL.requeue, String(row.id), attempts)

  /** Returns locked runs to the queue, or fails and refunds those that have reached the limit. */
  async function recordCrashes(
    tx: Transaction,
    rows: readonly Row[],
    { crashes, failure }: CrashLimit,
    nowMs: number,
  ): Promise<FailedRuns> {
    // To follow a job again is harmless. To give it up loses a paid result.
    const limitOf = ({ job }: Row) => (hasJob(job) ? MAX_CRASHES_OF_JOB : crashes)
    const isLast = (row: Row) => Number(row.attempts) + 1 >= limitOf(row)
    for (const row of rows) {
      if (isLast(row)) await tx.run(SQL.countAttempt, String(row.id), Number(row.attempts) + 1)
      else await requeue(tx, row, Number(row.attempts) + 1)
    }
    return await fail(tx, rows.filter(isLast), failure, nowMs)
  }

  return {
    claimRun: ({ worker, nowMs, models, separate = [], only }) =>
      repeatable(database, async (tx) => {
        // Sends the statements at once. Each sees all earlier commits.
        const [, lease, next] = await Promise.all([
          dialect.lockClaims === undefined ? undefined : tx.get(dialect.lockClaims),
          tx.get(SQL.holdLease, worker),
          only === undefined
            ? tx.get(SQL.nextRun, models, models.length + MAX_COMPARED, separate)
            : tx.get(SQL.nextOfThese, models, only),
        ])
        if (lease === undefined || next === undefined) return undefined
        const [row] = await Promise.all([
          tx.get(SQL.claim, Number(next.sequence), worker, nowMs),
          tx.run(SQL.takeTurn, Number(next.account_id)),
        ])
        return row && { ...runOfRow(row, []), job: jobOf(row.job) }
      }),
    async returnRuns(worker, kept) {
      const isLost = ({ id }: Row) => !kept.includes(String(id))
      if (!(await all(SQL.owned, worker)).some(isLost)) return
      await repeatable(database, async (tx) => {
        for (const row of (await tx.all(SQL.lockOwned, worker)).filter(isLost)) await requeue(tx, row)
      })
    },
    recordCrash: ({ id, owner, nowMs, startedAtMs }, limit) =>
      repeatable(database, async (tx) => {
        const isAttempt = (row: Row) => startedAtMs === undefined || Number(row.started_at) === startedAtMs
        const owned = await tx.all(SQL.lockOwned, owner)
        const rows = owned.filter((row) => row.id === id && isAttempt(row))
        return rows.length === 0 ? undefined : await recordCrashes(tx, rows, limit, nowMs)
      }),
    async queueLengths() {
      const row = await get(SQL.queueLengths)
      return Object.fromEntries(KINDS.map((kind) => [kind, Number(row?.[kind])])) as Record<Kind, number>
    },
    async reapWorker({ id, heartbeatAtMs }, limit, nowMs) {
      const failed = await repeatable(database, async (tx) => {
        // Waits until a claim of this worker that is being committed has ended.
        if ((await tx.run(SQL.removeExpiredWorker, id, heartbeatAtMs)) === 0) return undefined
        return await recordCrashes(tx, await tx.all(SQL.lockOwned, id), limit, nowMs)
      })
      if (failed !== undefined) await leases.forget(id)
      return failed
    },
    async releaseWorker(id) {
      await repeatable(database, async (tx) => {
        await tx.run(SQL.removeWorker, id)
        for (const row of await tx.all(SQL.lockOwned, id)) await requeue(tx, row)
      })
      await leases.forget(id)
    },
  } satisfies Partial<Store>
}
