/**
 * The queue. A worker has a run by a lease in its row, counted by the database's clock; its writes carry worker and attempt.
 * Accounts are served by turns: a run is numbered when it is created (`runs.ts`), and a claim takes the lowest.
 */
import { KINDS, type Kind } from '../../protocol/models.js'
import type { CrashLimit, FailedRuns, Store } from './contract.js'
import { backInQueue, MINE, mine } from './lease.js'
import { DOCUMENT, hasJob, heldRunOf, modelOfRow, RUN_COLUMNS } from './rows.js'
import { createFailure } from './runs.js'
import { type Database, type Dialect, hasNul, type Row, repeatable, type Transaction } from './sql.js'

const LEASE_MS = 15_000
/** How long after its lease a run waits for the answer to its create, before its outcome is unknown. */
const ANSWER_MS = 30_000
/** No create upstream starts with less lease. */
const MIN_CREATE_LEASE_MS = 10_000

/** A create was sent, and its answer is not known. JSON of a `StoredJob` without a handle. */
const IS_OPEN_CREATE = `(coalesce(job, '') LIKE '{"intent":%' AND job NOT LIKE '%"handle":%')`

export const queueStatements = (dialect: Dialect) => ({
  heads: `
    SELECT wanted.value AS model, (
      SELECT sequence FROM runs${dialect.index('runs_turn')}
      WHERE status = 'queued' AND model = wanted.value ORDER BY turn, sequence LIMIT 1
    ) AS head
    FROM ${dialect.list('$1', 'wanted')}`,

  claim: `
    UPDATE runs SET status = 'processing', owner = $2, attempt = attempt + 1, lease_until = ${dialect.now} + ${LEASE_MS},
      started_at = $3
    WHERE status = 'queued' AND sequence = (
      SELECT sequence FROM runs${dialect.index('runs_turn')} WHERE status = 'queued' AND model = $1
      ORDER BY turn, sequence LIMIT 1${dialect.lockFree})
    RETURNING ${RUN_COLUMNS}, job, attempt, ${DOCUMENT}`,

  claimOfThese: `
    UPDATE runs SET status = 'processing', owner = $2, attempt = attempt + 1, lease_until = ${dialect.now} + ${LEASE_MS},
      started_at = $3
    WHERE status = 'queued' AND sequence = (
      SELECT sequence FROM runs WHERE id ${dialect.inList('$4')} AND status = 'queued' AND model ${dialect.inList('$1')}
      ORDER BY turn, sequence LIMIT 1${dialect.lockFree})
    RETURNING ${RUN_COLUMNS}, job, attempt, ${DOCUMENT}`,

  // Jumps from one model to the next in the index.
  others: `
    WITH RECURSIVE names (model) AS (
      SELECT min(model) FROM runs${dialect.index('runs_turn')} WHERE status = 'queued'
      UNION ALL
      SELECT (SELECT min(runs.model) FROM runs${dialect.index('runs_turn')} WHERE status = 'queued' AND runs.model > names.model)
      FROM names WHERE model IS NOT NULL
    )
    SELECT runs.id, runs.model, ${DOCUMENT}
    FROM names JOIN runs ON runs.sequence = (
      SELECT sequence FROM runs${dialect.index('runs_turn')}
      WHERE status = 'queued' AND model = names.model ORDER BY turn, sequence LIMIT 1)
    WHERE NOT names.model ${dialect.inList('$1')}`,

  othersOfThese: `
    SELECT runs.id, runs.model, ${DOCUMENT} FROM runs
    WHERE id ${dialect.inList('$2')} AND status = 'queued' AND NOT model ${dialect.inList('$1')}`,

  modelOf: `SELECT runs.id, runs.model, ${DOCUMENT} FROM runs WHERE id = $1`,

  renew: `
    UPDATE runs SET lease_until = ${dialect.now} + ${LEASE_MS}
    WHERE id ${dialect.inList('$2')} AND owner = $1 AND (status = 'processing' OR stopping)
    RETURNING id, attempt`,

  // Locked runs belong to a worker that is renewing or ending them.
  expired: `
    SELECT id, account_id, key_id, price, crashes, job FROM runs${dialect.index('runs_leased')}
    WHERE status = 'processing' AND lease_until <= ${dialect.now} - CASE WHEN ${IS_OPEN_CREATE} THEN ${ANSWER_MS} ELSE 0 END
    ${dialect.lockFree}`,

  lockMine: `
    SELECT id, account_id, key_id, price, crashes, job FROM runs
    WHERE ${MINE} AND status = 'processing'${dialect.lock()}`,

  release: `
    UPDATE runs SET ${backInQueue(dialect)} WHERE owner = $1 AND status = 'processing' AND NOT ${IS_OPEN_CREATE}`,

  crashed: `UPDATE runs SET crashes = crashes + 1, ${backInQueue(dialect)} WHERE id = $1`,

  countCrash: `UPDATE runs SET crashes = crashes + 1 WHERE id = $1`,

  saveIntent: `
    UPDATE runs SET job = $4, job_key = $5
    WHERE ${MINE} AND status = 'processing' AND (NOT ${IS_OPEN_CREATE} OR job = $4) AND lease_until > ${dialect.now} + ${MIN_CREATE_LEASE_MS}
    RETURNING lease_until - ${dialect.now} AS left_ms`,

  owners: `SELECT DISTINCT owner FROM runs WHERE status = 'processing' OR stopping`,

  // Scans the index runs_queued once, which contains the kind: 10–17 ms for 100,000 queued runs. GROUP BY would sort,
  // and take three times as long.
  queueLengths: `
    SELECT count(*) FILTER (WHERE kind = 'video') AS video, count(*) FILTER (WHERE kind = 'image') AS image
    FROM runs${dialect.index('runs_queued')} WHERE status = 'queued'`,
})

/** Crashes of workers that follow one job: its outputs may be the reason. */
const MAX_CRASHES_OF_JOB = 20

export function createQueueStore(database: Database) {
  const { get, all, run, dialect } = database
  const SQL = queueStatements(dialect)
  const fail = createFailure(dialect)

  /** Returns locked runs to the queue, or fails and refunds those that have reached the limit. */
  async function recordCrashes(
    tx: Transaction,
    rows: readonly Row[],
    { crashes, failure }: CrashLimit,
    nowMs: number,
  ): Promise<FailedRuns> {
    // To follow a job again is harmless. To give it up loses a paid result.
    const limitOf = ({ job }: Row) => (hasJob(job) ? MAX_CRASHES_OF_JOB : crashes)
    const isLast = (row: Row) => Number(row.crashes) + 1 >= limitOf(row)
    for (const row of rows) await tx.run(isLast(row) ? SQL.countCrash : SQL.crashed, String(row.id))
    return await fail(tx, rows.filter(isLast), failure, nowMs)
  }

  return {
    async claimRun({ worker, nowMs, models, only }) {
      if (only !== undefined) {
        const row = await get(SQL.claimOfThese, models, worker, nowMs, only)
        return row && heldRunOf(row)
      }
      const heads = (await all(SQL.heads, models)).filter(({ head }) => head !== null)
      for (const { model } of heads.toSorted((one, other) => Number(one.head) - Number(other.head))) {
        const row = await get(SQL.claim, String(model), worker, nowMs)
        if (row !== undefined) return heldRunOf(row)
      }
      return undefined
    },
    findOthers: async (models, only) =>
      (await (only === undefined ? all(SQL.others, models) : all(SQL.othersOfThese, models, only))).map(
        modelOfRow,
      ),
    async findModelOf(id) {
      const row = hasNul(id) ? undefined : await get(SQL.modelOf, id)
      return row && modelOfRow(row)
    },
    async renewRuns(worker, ids) {
      const rows = await all(SQL.renew, worker, ids)
      return new Map(rows.map(({ id, attempt }) => [String(id), Number(attempt)]))
    },
    takeBack: async (limit, nowMs) => {
      if ((await get(SQL.expired)) === undefined) return { runs: 0, refunded: 0 }
      return await repeatable(database, async (tx) =>
        recordCrashes(tx, await tx.all(SQL.expired), limit, nowMs),
      )
    },
    releaseRuns: async (worker) => void (await run(SQL.release, worker)),
    async saveIntent(claimed, intent) {
      const row = await get(SQL.saveIntent, ...mine(claimed), JSON.stringify({ intent }), null)
      return row && Number(row.left_ms)
    },
    recordCrash: (claimed, limit) =>
      repeatable(database, async (tx) => {
        const row = await tx.get(SQL.lockMine, ...mine(claimed))
        return row && (await recordCrashes(tx, [row], limit, claimed.nowMs))
      }),
    findOwners: async () => (await all(SQL.owners)).map(({ owner }) => String(owner)),
    async queueLengths() {
      const row = await get(SQL.queueLengths)
      return Object.fromEntries(KINDS.map((kind) => [kind, Number(row?.[kind])])) as Record<Kind, number>
    },
  } satisfies Partial<Store>
}
