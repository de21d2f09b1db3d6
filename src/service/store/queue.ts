/**
 * The queue. A worker has a run by a lease in its row, counted by the database's clock; its writes carry worker and attempt.
 * Accounts are served by turns: a run is numbered when it is created (`runs.ts`), and a claim takes the lowest.
 */
import { KINDS, type Kind } from '../../protocol/models.js'
import type { JobIntent } from '../engines/engine.js'
import { DOCUMENT, hasJob, heldRunOf, RUN_COLUMNS, recordOf } from './rows.js'
import type { ClaimedRun, ClaimRequest, CrashLimit, FailedRuns, HeldRun, ModelOfRun } from './run.js'
import { backInQueue, failRuns, MINE, mine } from './runs.js'
import { type Database, type Dialect, hasNul, type Row, repeatable, type Transaction } from './sql.js'

/** How long a worker has a run without a renewal. */
const LEASE_MS = 15_000
/** How long after its lease a run waits for the answer to its create, before its outcome is unknown. */
const ANSWER_MS = 30_000
/** No create upstream starts with less lease. */
export const MIN_CREATE_LEASE_MS = 10_000
/** Crashes of workers that follow one job: its outputs may be the reason. */
const MAX_CRASHES_OF_JOB = 20

/** A create was sent, and its answer is not known. JSON of a `StoredJob` without a handle. */
const IS_OPEN_CREATE = `(coalesce(job, '') LIKE '{"intent":%' AND job NOT LIKE '%"handle":%')`

/** Which runs a worker gets. */
export function createClaimStore({ get, all, dialect }: Database) {
  const { now, index, inList, list, lockFree } = dialect
  const byTurn = `FROM runs${index('runs_turn')} WHERE status = 'queued' AND model`

  /** Claims the run whose sequence `which` selects. */
  const claim = (which: string) => `
    UPDATE runs SET status = 'processing', owner = :worker, attempt = attempt + 1, lease_until = ${now} + ${LEASE_MS},
      started_at = :nowMs
    WHERE status = 'queued' AND sequence = (${which} ORDER BY turn, sequence LIMIT 1${lockFree})
    RETURNING ${RUN_COLUMNS}, job, attempt, ${DOCUMENT}`
  const claimOfModel = claim(`SELECT sequence ${byTurn} = :model`)
  const claimOfThese = claim(
    `SELECT sequence FROM runs WHERE id ${inList(':only')} AND status = 'queued' AND model ${inList(':models')}`,
  )
  const heads = `
    SELECT wanted.value AS model,
      (SELECT sequence ${byTurn} = wanted.value ORDER BY turn, sequence LIMIT 1) AS head
    FROM ${list(':models', 'wanted')}`

  // Jumps from one model to the next in the index.
  const others = `
    WITH RECURSIVE names (model) AS (
      SELECT min(model) FROM runs${index('runs_turn')} WHERE status = 'queued'
      UNION ALL
      SELECT (SELECT min(runs.model) FROM runs${index('runs_turn')} WHERE status = 'queued' AND runs.model > names.model)
      FROM names WHERE model IS NOT NULL
    )
    SELECT runs.id, runs.model, ${DOCUMENT}
    FROM names JOIN runs ON runs.sequence = (SELECT sequence ${byTurn} = names.model ORDER BY turn, sequence LIMIT 1)
    WHERE NOT names.model ${inList(':models')}`
  const othersOfThese = `
    SELECT runs.id, runs.model, ${DOCUMENT} FROM runs
    WHERE id ${inList(':only')} AND status = 'queued' AND NOT model ${inList(':models')}`

  return {
    /**
     * Moves one queued run of the requested models to processing, with a lease of the worker. Of each model, accounts are
     * served in turn.
     */
    async claimRun({ worker, nowMs, models, only }: ClaimRequest): Promise<HeldRun | undefined> {
      if (only !== undefined) {
        const row = await get(claimOfThese, { worker, nowMs, models, only })
        return row && heldRunOf(row)
      }
      const found = (await all(heads, { models })).filter(({ head }) => head !== null)
      for (const { model } of found.toSorted((one, other) => Number(one.head) - Number(other.head))) {
        const row = await get(claimOfModel, { worker, nowMs, model: String(model) })
        if (row !== undefined) return heldRunOf(row)
      }
      return undefined
    },
    /**
     * Returns the first queued run of each model that is not in the list. `only`: ids of the only runs that count. Default: all.
     */
    async findOthers(models: readonly string[], only?: readonly string[]): Promise<readonly ModelOfRun[]> {
      const rows = await (only === undefined ? all(others, { models }) : all(othersOfThese, { models, only }))
      return rows.map((row) => recordOf(row))
    },
    async findModelOf(id: string): Promise<ModelOfRun | undefined> {
      const find = `SELECT runs.id, runs.model, ${DOCUMENT} FROM runs WHERE id = :id`
      const row = hasNul(id) ? undefined : await get(find, { id })
      return row && recordOf(row)
    },
    /** Returns the number of queued runs of each kind. Called often, so it must be fast for a queue of any length. */
    async queueLengths(): Promise<Readonly<Record<Kind, number>>> {
      // Scans the index runs_queued once, which contains the kind: 10–17 ms for 100,000 queued runs. GROUP BY would sort,
      // and take three times as long.
      const counts = KINDS.map((kind) => `count(*) FILTER (WHERE kind = '${kind}') AS ${kind}`)
      const row = await get(`SELECT ${counts} FROM runs${index('runs_queued')} WHERE status = 'queued'`)
      return recordOf(row ?? {})
    },
  }
}

/** The leases of the runs that workers have, and how these come back to the queue. */
export function createLeaseStore(database: Database) {
  const { get, all, run, dialect } = database
  const { now, index, inList, lock, lockFree } = dialect

  // Locked runs belong to a worker that is renewing or ending them.
  const expired = `
    SELECT id, account_id, key_id, price, crashes, job FROM runs${index('runs_leased')}
    WHERE status = 'processing' AND lease_until <= ${now} - CASE WHEN ${IS_OPEN_CREATE} THEN ${ANSWER_MS} ELSE 0 END
    ${lockFree}`

  const saveIntent = `
    UPDATE runs SET job = :job, job_key = NULL
    WHERE ${MINE} AND status = 'processing' AND (NOT ${IS_OPEN_CREATE} OR job = :job)
      AND lease_until > ${now} + ${MIN_CREATE_LEASE_MS}
    RETURNING lease_until - ${now} AS left_ms`

  return {
    /** Renews the leases of these runs, as far as the worker has them. Returns the numbers of their claims by id. */
    async renewRuns(worker: string, ids: readonly string[]): Promise<ReadonlyMap<string, number>> {
      const rows = await all(
        `UPDATE runs SET lease_until = ${now} + ${LEASE_MS}
         WHERE id ${inList(':ids')} AND owner = :worker AND (status = 'processing' OR stopping)
         RETURNING id, attempt`,
        { worker, ids },
      )
      return new Map(rows.map(({ id, attempt }) => [String(id), Number(attempt)]))
    },
    /**
     * Returns the runs whose lease ran out to the queue. Each counts a crash, and fails at the limit. A run whose create has no
     * answer yet has 30 s more.
     */
    takeBack: async (limit: CrashLimit, nowMs: number): Promise<FailedRuns> => {
      if ((await get(expired)) === undefined) return { runs: 0, refunded: 0 }
      return await repeatable(database, async (tx) =>
        recordCrashes(tx, dialect, await tx.all(expired), limit, nowMs),
      )
    },
    /** Returns the runs of a worker that stops to the queue, except those that wait for the answer to a create. */
    releaseRuns: async (worker: string): Promise<void> =>
      void (await run(
        `UPDATE runs SET ${backInQueue(dialect)}
         WHERE owner = :worker AND status = 'processing' AND NOT ${IS_OPEN_CREATE}`,
        { worker },
      )),
    /**
     * Stores the intent of a create before it is sent. Returns the milliseconds of the lease that are left; undefined if these
     * are less than 10 s, if another create was sent, or if the change is refused.
     */
    async saveIntent(claimed: ClaimedRun, intent: JobIntent): Promise<number | undefined> {
      const row = await get(saveIntent, { ...mine(claimed), job: JSON.stringify({ intent }) })
      return row && Number(row.left_ms)
    },
    /** Called after a renderer crash: returns the run to the queue. At the limit, fails it and refunds it as `failRun` does. */
    recordCrash: (claimed: ClaimedRun, limit: CrashLimit): Promise<FailedRuns | undefined> =>
      repeatable(database, async (tx) => {
        const row = await tx.get(
          `SELECT id, account_id, key_id, price, crashes, job FROM runs
           WHERE ${MINE} AND status = 'processing'${lock()}`,
          mine(claimed),
        )
        return row && (await recordCrashes(tx, dialect, [row], limit, claimed.nowMs))
      }),
    /** Returns the workers that have runs. */
    findOwners: async (): Promise<readonly string[]> => {
      const find = `SELECT DISTINCT owner FROM runs WHERE status = 'processing' OR stopping`
      return (await all(find)).map(({ owner }) => String(owner))
    },
  }
}

/** Returns locked runs to the queue, or fails and refunds those that have reached the limit. */
async function recordCrashes(
  tx: Transaction,
  dialect: Dialect,
  rows: readonly Row[],
  { crashes, failure }: CrashLimit,
  nowMs: number,
): Promise<FailedRuns> {
  // To follow a job again is harmless. To give it up loses a paid result.
  const limitOf = ({ job }: Row) => (hasJob(job) ? MAX_CRASHES_OF_JOB : crashes)
  const isLast = (row: Row) => Number(row.crashes) + 1 >= limitOf(row)
  for (const row of rows)
    await tx.run(
      `UPDATE runs SET crashes = crashes + 1${isLast(row) ? '' : `, ${backInQueue(dialect)}`} WHERE id = :id`,
      { id: String(row.id) },
    )
  return await failRuns(tx, rows.filter(isLast), failure, nowMs)
}
