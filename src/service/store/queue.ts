/**
 * The queue. A worker has a run by a lease in its row, counted by the database's clock; its writes carry worker and attempt.
 * Accounts are served by turns: a run is numbered when it is created (`runs.ts`), and a claim takes the lowest.
 */
import { KINDS, type Kind } from '../../protocol/models.js'
import type { JobIntent } from '../engines/engine.js'
import { DOCUMENT, hasJob, heldRunOf, RUN_COLUMNS, recordOf } from './rows.js'
import type { ClaimedRun, ClaimRequest, CrashLimit, FailedRuns, HeldRun, ModelOfRun } from './run.js'
import { BACK_IN_QUEUE, failRuns, lockMine, MINE, mine } from './runs.js'
import type { Database, Row, Transaction } from './sql.js'

/** How long a worker has a run without a renewal. */
const LEASE_MS = 15_000
/** How long after its lease a run waits for the answer to its create, before its outcome is unknown. */
const ANSWER_MS = 30_000
/** No create upstream starts with less lease. */
export const MIN_CREATE_LEASE_MS = 10_000
/** Maximum number of crashes while one job is followed: its outputs may cause them. */
const MAX_CRASHES_OF_JOB = 20

/** A create was sent, and its answer is not known. JSON of a `StoredJob` without a handle. */
const IS_OPEN_CREATE = `(coalesce(job, '') LIKE '{"intent":%' AND job NOT LIKE '%"handle":%')`

const BY_TURN = `FROM runs {index runs_turn} WHERE status = 'queued' AND model`

/** Claims the first of the selected runs. */
const claimOf = (selected: string) => `
  UPDATE runs SET status = 'processing', owner = :worker, attempt = attempt + 1, lease_until = {now} + ${LEASE_MS},
    started_at = :nowMs
  WHERE status = 'queued' AND sequence = (SELECT sequence ${selected} ORDER BY turn, sequence LIMIT 1 {lock_free})
  RETURNING ${RUN_COLUMNS}, job, attempt, ${DOCUMENT}`
const CLAIM_OF_MODEL = claimOf(`${BY_TURN} = :model`)
const CLAIM_OF_THESE = claimOf(`FROM runs WHERE id {in :only} AND status = 'queued' AND model {in :models}`)

const HEADS = `
  SELECT list.value AS model, (SELECT sequence ${BY_TURN} = list.value ORDER BY turn, sequence LIMIT 1) AS head
  FROM {list :models}`

/** Jumps from one model to the next in the index. */
const OTHERS = `
  WITH RECURSIVE names (model) AS (
    SELECT min(model) FROM runs {index runs_turn} WHERE status = 'queued'
    UNION ALL
    SELECT (SELECT min(runs.model) FROM runs {index runs_turn} WHERE status = 'queued' AND runs.model > names.model)
    FROM names WHERE model IS NOT NULL
  )
  SELECT runs.id, runs.model, ${DOCUMENT}
  FROM names JOIN runs ON runs.sequence = (SELECT sequence ${BY_TURN} = names.model ORDER BY turn, sequence LIMIT 1)
  WHERE NOT names.model {in :models}`
const OTHERS_OF_THESE = `
  SELECT runs.id, runs.model, ${DOCUMENT} FROM runs
  WHERE id {in :only} AND status = 'queued' AND NOT model {in :models}`

/**
 * Scans the index runs_queued once, which contains the kind: 10–17 ms for 100,000 queued runs. GROUP BY would sort, and take
 * three times as long.
 */
const QUEUE_LENGTHS = `
  SELECT ${KINDS.map((kind) => `count(*) FILTER (WHERE kind = '${kind}') AS ${kind}`)}
  FROM runs {index runs_queued} WHERE status = 'queued'`

/** Which runs a worker gets. */
export const createClaimStore = ({ get, all }: Database) => ({
  /**
   * Moves one queued run of the requested models to processing, with a lease of the worker. Of each model, accounts are
   * served in turn.
   */
  async claimRun({ worker, nowMs, models, only }: ClaimRequest): Promise<HeldRun | undefined> {
    if (only !== undefined) {
      const row = await get(CLAIM_OF_THESE, { worker, nowMs, models, only })
      return row && heldRunOf(row)
    }
    const heads = (await all(HEADS, { models })).filter(({ head }) => head !== null)
    for (const { model } of heads.toSorted((one, other) => Number(one.head) - Number(other.head))) {
      const row = await get(CLAIM_OF_MODEL, { worker, nowMs, model: String(model) })
      if (row !== undefined) return heldRunOf(row)
    }
    return undefined
  },
  /**
   * Returns the first queued run of each model that is not in the list. `only`: ids of the only runs that count. Default: all.
   */
  async findOthers(models: readonly string[], only?: readonly string[]): Promise<readonly ModelOfRun[]> {
    const rows = await (only === undefined ? all(OTHERS, { models }) : all(OTHERS_OF_THESE, { models, only }))
    return rows.map((row) => recordOf(row))
  },
  async findModelOf(id: string): Promise<ModelOfRun | undefined> {
    const row = await get(`SELECT runs.id, runs.model, ${DOCUMENT} FROM runs WHERE id = :id`, { id })
    return row && recordOf(row)
  },
  /** Returns the number of queued runs of each kind. Called often, so it must be fast for a queue of any length. */
  queueLengths: async (): Promise<Readonly<Record<Kind, number>>> =>
    recordOf((await get(QUEUE_LENGTHS)) ?? {}),
})

const RENEW = `
  UPDATE runs SET lease_until = {now} + ${LEASE_MS}
  WHERE id {in :ids} AND owner = :worker AND (status = 'processing' OR stopping)
  RETURNING id, attempt`

/** Locked runs belong to a worker that is renewing or ending them. */
const EXPIRED = `
  SELECT id, account_id, key_id, price, crashes, job FROM runs {index runs_leased}
  WHERE status = 'processing' AND lease_until <= {now} - CASE WHEN ${IS_OPEN_CREATE} THEN ${ANSWER_MS} ELSE 0 END
  {lock_free}`

const SAVE_INTENT = `
  UPDATE runs SET job = :job, job_key = NULL
  WHERE ${MINE} AND status = 'processing' AND (NOT ${IS_OPEN_CREATE} OR job = :job)
    AND lease_until > {now} + ${MIN_CREATE_LEASE_MS}
  RETURNING lease_until - {now} AS left_ms`

const RELEASE = `
  UPDATE runs SET ${BACK_IN_QUEUE} WHERE owner = :worker AND status = 'processing' AND NOT ${IS_OPEN_CREATE}`

/** The leases of the runs that workers have, and how these come back to the queue. */
export const createLeaseStore = ({ repeatable, get, all, run }: Database) => ({
  /** Renews the leases of these runs, as far as the worker has them. Returns the numbers of their claims by id. */
  async renewRuns(worker: string, ids: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const rows = await all(RENEW, { worker, ids })
    return new Map(rows.map(({ id, attempt }) => [String(id), Number(attempt)]))
  },
  /**
   * Returns the runs whose lease ran out to the queue. Each counts a crash, and fails at the limit. A run whose create has no
   * answer yet has 30 s more.
   */
  async takeBack(limit: CrashLimit, nowMs: number): Promise<FailedRuns> {
    if ((await get(EXPIRED)) === undefined) return { runs: 0, refunded: 0 }
    return await repeatable(async (tx) => recordCrashes(tx, await tx.all(EXPIRED), limit, nowMs))
  },
  /** Returns the runs of a worker that stops to the queue, except those that wait for the answer to a create. */
  releaseRuns: async (worker: string): Promise<void> => void (await run(RELEASE, { worker })),
  /**
   * Stores the intent of a create before it is sent. Returns the milliseconds of the lease that are left; undefined if these
   * are less than 10 s, if another create was sent, or if the change is refused.
   */
  async saveIntent(claimed: ClaimedRun, intent: JobIntent): Promise<number | undefined> {
    const row = await get(SAVE_INTENT, { ...mine(claimed), job: JSON.stringify({ intent }) })
    return row && Number(row.left_ms)
  },
  /** Called after a renderer crash: returns the run to the queue. At the limit, fails it and refunds it as `failRun` does. */
  recordCrash: (claimed: ClaimedRun, limit: CrashLimit): Promise<FailedRuns | undefined> =>
    repeatable(async (tx) => {
      const row = await lockMine(tx, claimed)
      return row && (await recordCrashes(tx, [row], limit, claimed.nowMs))
    }),
  /** Returns the workers that have runs. */
  findOwners: async (): Promise<readonly string[]> =>
    (await all(`SELECT DISTINCT owner FROM runs WHERE status = 'processing' OR stopping`)).map(({ owner }) =>
      String(owner),
    ),
})

/** Returns locked runs to the queue, or fails and refunds those that have reached the limit. */
async function recordCrashes(
  tx: Transaction,
  rows: readonly Row[],
  { crashes, failure }: CrashLimit,
  nowMs: number,
): Promise<FailedRuns> {
  // Following a job again costs nothing. Giving it up loses a paid result.
  const isLast = ({ crashes: before, job }: Row) =>
    Number(before) + 1 >= (hasJob(job) ? MAX_CRASHES_OF_JOB : crashes)
  for (const row of rows) {
    const returned = isLast(row) ? '' : `, ${BACK_IN_QUEUE}`
    await tx.run(`UPDATE runs SET crashes = crashes + 1${returned} WHERE id = :id`, { id: String(row.id) })
  }
  return await failRuns(tx, rows.filter(isLast), failure, nowMs)
}
