/**
 * Runs, from the create to the end. The queue is in `queue.ts`. The status of a run changes only as `worker.ts` draws
 * it: each statement that changes it also checks the previous status.
 */
import { writeJson } from '../../protocol/json.js'
import { OUTCOME_UNKNOWN, REFUNDED } from '../../protocol/run-state.js'
import { type JobIntent, OutcomeUnknown, type StoredJob } from '../engines/engine.js'
import { checkBudget } from '../rules/key-checks.js'
import { moveBalance } from './accounts.js'
import {
  DOCUMENT,
  failureOf,
  hasJob,
  jobKeyOf,
  jobOf,
  newRunColumns,
  OUTPUT_COLUMNS,
  RUN_COLUMNS,
  recordOf,
  runOf,
} from './rows.js'
import {
  type AddedRun,
  type CanceledEnd,
  type CanceledRun,
  type ClaimedRun,
  canceled,
  type DecidedRun,
  type FailedRuns,
  type Idempotency,
  type NewRun,
  type RunFailure,
  type StoppingRun,
  type StoredOutput,
  type StoredRun,
  type UnknownDecision,
  withRefund,
} from './run.js'
import {
  checkSession,
  type Database,
  insert,
  type Row,
  type SessionProof,
  type Transaction,
  update,
} from './sql.js'

/** The run with this claim. */
export const MINE = 'id = :id AND owner = :owner AND attempt = :attempt'
export const mine = ({ id, owner, attempt }: ClaimedRun) => ({ id, owner, attempt })

/**
 * Returns a run to the head of the queue of its model: its own turn may be far from the others. Its files count as kept
 * again, even if they were removed after it had ended.
 */
export const BACK_IN_QUEUE = `
  status = 'queued', owner = '', started_at = NULL, lease_until = 0, files = 'kept', turn = coalesce((
    SELECT min(head.turn) FROM runs AS head {index runs_turn}
    WHERE head.status = 'queued' AND head.model = runs.model), 0)`

const CREATED_BEFORE = `
  SELECT id, request FROM runs
  WHERE account_id = :accountId AND idempotency_key = :key AND created_at > :sinceMs ORDER BY sequence DESC LIMIT 1`

/** Locks the account: other changes of it wait until the run is charged. */
const LOCK_ACCOUNT = `
  SELECT 0 AS spent, NULL AS spend_limit, 0 AS used, NULL AS quota, false AS disabled, NULL AS expires_at, balance, banned
  FROM accounts WHERE id = :accountId {lock}`

/** Locks the account and then its key. */
const LOCK_KEY = `
  SELECT keys.spent, keys.spend_limit, keys.used, keys.quota, keys.disabled, keys.expires_at, accounts.balance, accounts.banned
  FROM accounts JOIN keys ON keys.account_id = accounts.id WHERE accounts.id = :accountId AND keys.id = :keyId {lock}`

/**
 * Fair queueing: behind the last queued run of the account, else level with the head of the queue. The account is locked, so that
 * two of its creates at the same time get different turns.
 */
const TURN = `coalesce(
  (SELECT max(turn) + 1 FROM runs {index runs_queued}
   WHERE status = 'queued' AND model = :model AND account_id = :account_id),
  (SELECT min(turn) FROM runs {index runs_turn} WHERE status = 'queued' AND model = :model), 0)`

const LOCK_RUN = `
  SELECT id, account_id, key_id, price, status, stopping, failure, job FROM runs WHERE id = :id {lock}`

const FIND_RUN = `SELECT ${RUN_COLUMNS} FROM runs WHERE id = :id AND account_id + 0 = :accountId`

/** Maximum number of runs whose files one call marks. */
const MAX_EXPIRED = 100
const EXPIRE_FILES = `
  UPDATE runs SET files = 'removing'
  WHERE sequence IN (
    SELECT sequence FROM runs {index runs_with_files}
    WHERE finished_at IS NOT NULL AND NOT stopping AND files <> 'removed' AND finished_at < :beforeMs
      AND (finished_at, sequence) > (:finishedAtMs, :sequence)
    ORDER BY finished_at, sequence LIMIT ${MAX_EXPIRED})
  RETURNING id, finished_at, sequence`

const repeatedRun = (before: Row | undefined, idempotency: Idempotency | undefined): AddedRun | undefined =>
  before && (before.request === idempotency?.request ? { id: String(before.id) } : { refused: 'key_reused' })

const moveSpend = (tx: Transaction, keyId: number, price: number, used: number) =>
  tx.run('UPDATE keys SET spent = spent + :price, used = used + :used WHERE id = :keyId', {
    keyId,
    price,
    used,
  })

export function createRunStore({ repeatable, get, all }: Database) {
  return {
    /**
     * Adds the run, charges its price and counts it against its key, atomically. Throws `Refusal`: 401 for the key, 403 for
     * the account or the spend limit, 429 for the quota, 402 for the balance. A free run without a stored key is never
     * refused, nor is a repeated create.
     */
    addRun: (run: NewRun): Promise<AddedRun> =>
      repeatable(async (tx) => {
        await checkSession(tx, run.by)
        return await addRun(tx, run)
      }),
    /** Returns the run that this same request has created, or the refusal if another request has used its key. */
    async findCreated(accountId: number, idempotency: Idempotency): Promise<AddedRun | undefined> {
      const { key, sinceMs } = idempotency
      return repeatedRun(await get(CREATED_BEFORE, { accountId, key, sinceMs }), idempotency)
    },
    async findRun(id: string, accountId: number): Promise<StoredRun | undefined> {
      const row = await get(FIND_RUN, { id, accountId })
      const outputs = `SELECT ${OUTPUT_COLUMNS} FROM outputs WHERE run_id = :id ORDER BY position`
      return row && runOf(row, row.status === 'succeeded' ? await all(outputs, { id }) : [])
    },
    async findOutput(token: string, name: string): Promise<StoredOutput | undefined> {
      const find = `
        SELECT token, name, content_type, bytes, sha256 FROM outputs WHERE token = :token AND name = :name`
      const row = await get(find, { token, name })
      return row && recordOf(row)
    },
    /**
     * Decides on a run whose outcome is unknown: refunds it, or returns it to the queue with the job that its provider has
     * for it; the job of a canceled run is then canceled. A repeat of the same decision changes nothing.
     */
    decideUnknown: (id: string, decision: UnknownDecision): Promise<DecidedRun> =>
      repeatable(async (tx) => {
        const row = await tx.get(LOCK_RUN, { id })
        return row === undefined ? 'missing' : await decideUnknown(tx, row, decision)
      }),
    /**
     * Cancels a run, and refunds it if it is queued. A run in processing is canceled at once, and then stopped and settled by
     * a worker. A run that has ended stays as it is. Returns undefined if the account, or any without `accountId`, has no
     * such run.
     */
    cancelRun: (
      id: string,
      nowMs: number,
      accountId?: number,
      by?: SessionProof,
    ): Promise<CanceledRun | undefined> =>
      repeatable(async (tx) => {
        await checkSession(tx, by)
        const row = await tx.get(LOCK_RUN, { id })
        const isOfAccount = accountId === undefined || accountId === Number(row?.account_id)
        return row && isOfAccount ? await cancelRun(tx, row, nowMs) : undefined
      }),
  }
}

/** What a worker stores about the runs that it has claimed. */
export function createAttemptStore({ repeatable, all, run }: Database) {
  return {
    /**
     * Stores the job of the run, in place of an earlier one. Returns false if the change is refused. The worker that sent the
     * create with `intent` can store its job even after another worker has taken the run over.
     */
    saveJob: async (claimed: ClaimedRun, job: StoredJob, intent?: JobIntent): Promise<boolean> =>
      (await run(
        `UPDATE runs SET job = :job, job_key = :key
         WHERE id = :id
           AND (owner = :owner AND attempt = :attempt AND (status = 'processing' OR stopping) OR job = :before)`,
        {
          ...mine(claimed),
          job: JSON.stringify(job),
          key: jobKeyOf(job),
          before: intent && JSON.stringify({ intent }),
        },
      )) > 0,
    /** A repeat with the same outputs returns true again. */
    finishRun: (claimed: ClaimedRun, outputs: readonly StoredOutput[]): Promise<boolean> =>
      repeatable(async (tx) => {
        const finish = `
          UPDATE runs SET status = 'succeeded', finished_at = :nowMs WHERE ${MINE} AND status = 'processing'`
        if ((await tx.run(finish, { ...mine(claimed), nowMs: claimed.nowMs })) === 0) {
          // Each render has its own token: these outputs are there only if an earlier call was committed.
          const find = 'SELECT 1 FROM outputs WHERE run_id = :id AND token {in :tokens}'
          const tokens = outputs.map(({ token }) => token)
          return (await tx.get(find, { id: claimed.id, tokens })) !== undefined
        }
        for (const [position, { contentType, token, name, bytes, sha256 }] of outputs.entries()) {
          const file = { token, name, content_type: contentType, bytes, sha256 }
          await tx.run(...insert('outputs', { run_id: claimed.id, position, ...file }))
        }
        return true
      }),
    /**
     * Fails the run and refunds its price in the same step, unless its outcome is unknown. Returns undefined if the change
     * is refused.
     */
    failRun: (claimed: ClaimedRun, failure: RunFailure): Promise<FailedRuns | undefined> =>
      repeatable(async (tx) => {
        const row = await lockMine(tx, claimed)
        return row && (await failRuns(tx, [row], failure, claimed.nowMs))
      }),
    /** Finds the canceled runs that must be stopped: the runs of this worker, and those whose lease ran out. */
    findStopping: async (worker: string): Promise<readonly StoppingRun[]> => {
      const find = `
        SELECT id, model, owner, job, finished_at AS canceled_at, ${DOCUMENT} FROM runs {index runs_stopping}
        WHERE stopping AND (owner = :worker OR lease_until <= {now})`
      return (await all(find, { worker })).map(({ job, ...row }) => ({
        ...recordOf<StoppingRun>(row),
        stored: jobOf(job),
      }))
    },
    /**
     * Records how a canceled run has stopped. Returns undefined if that is recorded already, or if the run no longer has the
     * job `stored`.
     */
    settleCanceled: (
      id: string,
      end: CanceledEnd,
      nowMs: number,
      stored?: StoredJob | undefined,
    ): Promise<FailedRuns | undefined> =>
      repeatable(async (tx) => {
        const row = await tx.get(LOCK_RUN, { id })
        // A worker that still renders the run may have sent its create in the meantime.
        if (!row?.stopping || JSON.stringify(jobOf(row.job)) !== JSON.stringify(stored)) return undefined
        if (end === 'resumed') await requeue(tx, id)
        else
          await tx.run(
            ...update('runs', id, { ...failureColumn(canceled(end, Number(row.price))), stopping: false }),
          )
        return { runs: 1, refunded: end === 'refunded' ? await refundRun(tx, row, nowMs) : 0 }
      }),
  }
}

export interface ExpiredRun {
  readonly id: string
  readonly finishedAtMs: number
  readonly sequence: number
}
const BEFORE_ALL: Omit<ExpiredRun, 'id'> = { finishedAtMs: 0, sequence: 0 }

/** The files of ended runs. */
export const createFileRecords = ({ all, run }: Database) => ({
  /**
   * Marks runs that ended before `beforeMs` as having no files, and returns them, at most `MAX_EXPIRED`, in the order of their
   * ends. `after`: a run that an earlier call returned; only runs behind it count. Returns them again until `filesRemoved`.
   */
  async expireFiles(beforeMs: number, after = BEFORE_ALL): Promise<readonly ExpiredRun[]> {
    const { finishedAtMs, sequence } = after
    const rows = await all(EXPIRE_FILES, { beforeMs, finishedAtMs, sequence })
    return rows
      .map((row) => recordOf<ExpiredRun>(row))
      .sort((one, other) => one.finishedAtMs - other.finishedAtMs || one.sequence - other.sequence)
  },
  filesRemoved: async (ids: readonly string[]): Promise<void> =>
    void (await run(`UPDATE runs SET files = 'removed' WHERE id {in :ids} AND files = 'removing'`, { ids })),
})

/** Locks the run of a claim that is still processing. */
export const lockMine = (tx: Transaction, claimed: ClaimedRun): Promise<Row | undefined> =>
  tx.get(
    `SELECT id, account_id, key_id, price, crashes, job FROM runs WHERE ${MINE} AND status = 'processing' {lock}`,
    mine(claimed),
  )

const failureColumn = (failure: RunFailure) => ({ failure: JSON.stringify(failure) })

/** Returns an ended run to the queue: a worker then follows its job. */
const requeue = (tx: Transaction, id: string) =>
  tx.run(
    `UPDATE runs SET ${BACK_IN_QUEUE}, stopping = false, finished_at = NULL, failure = NULL WHERE id = :id`,
    { id },
  )

async function addRun(tx: Transaction, run: NewRun): Promise<AddedRun> {
  const { id, accountId, keyId, price, carried, idempotency, createdAtMs } = run
  // Sends the statements at once. The first one locks the account, so a commit in progress has ended before the others
  // look for its runs.
  const [account, existing, before] = await Promise.all([
    tx.get(keyId === undefined ? LOCK_ACCOUNT : LOCK_KEY, { accountId, keyId }),
    tx.mayHaveCommitted ? tx.get('SELECT id FROM runs WHERE id = :id', { id }) : undefined,
    idempotency && tx.get(CREATED_BEFORE, { accountId, key: idempotency.key, sinceMs: idempotency.sinceMs }),
  ])
  if (existing !== undefined) return { id }
  const repeated = repeatedRun(before, idempotency)
  if (repeated !== undefined) return repeated
  if (account === undefined) throw new Error(`Account ${accountId} or its key ${keyId} does not exist.`)
  if (keyId !== undefined || price > 0) checkBudget(recordOf(account), price, createdAtMs)
  if (run.onlyCheck) return { isAcceptable: true }
  const columns = { ...newRunColumns(run), status: 'queued', input: writeJson(run.input) }
  const document = carried && { hash: carried.hash, document: carried.json }
  const charge = { run_id: id, key_id: keyId, created_at: createdAtMs }
  await Promise.all([
    document && tx.run(...insert('documents', document, 'ON CONFLICT DO NOTHING')),
    tx.run(...insert('runs', columns, '', { turn: TURN })),
    keyId !== undefined && moveSpend(tx, keyId, price, 1),
    price > 0 && moveBalance(tx, accountId, { kind: 'charge', amount: -price, ...charge }),
  ])
  return { id }
}

async function cancelRun(tx: Transaction, row: Row, nowMs: number): Promise<CanceledRun> {
  const accountId = Number(row.account_id)
  if (row.status !== 'queued' && row.status !== 'processing')
    return { accountId, isCanceled: false, refunded: 0 }
  // A queued run has a job if an earlier attempt sent its create. The next attempt follows it.
  const isQueued = row.status === 'queued' && !hasJob(row.job)
  const failure = canceled(isQueued ? 'refunded' : 'undecided', Number(row.price))
  const end = { status: 'canceled', finished_at: nowMs, stopping: !isQueued }
  await tx.run(...update('runs', String(row.id), { ...failureColumn(failure), ...end }))
  return { accountId, isCanceled: true, refunded: isQueued ? await refundRun(tx, row, nowMs) : 0 }
}

/**
 * Fails runs and refunds their prices, within the transaction that has locked them. `rows`: id, account, key, price and job of
 * each. The outcome of a run with a create in flight is unknown, after any failure.
 */
export async function failRuns(
  tx: Transaction,
  rows: readonly Row[],
  failure: RunFailure,
  nowMs: number,
): Promise<FailedRuns> {
  let refunded = 0
  // Locks accounts before keys, as `addRun` does, and accounts in their order.
  for (const row of rows.toSorted((one, other) => Number(one.account_id) - Number(other.account_id))) {
    const { intent, handle, end, isNamed = false } = jobOf(row.job) ?? {}
    // Also a paid job that the provider has not ended.
    const mayContinue =
      handle !== undefined && handle.place?.costs !== false && (end === undefined || end === 'done')
    const isInFlight = failure.code !== OUTCOME_UNKNOWN && (intent !== undefined || isNamed || mayContinue)
    const cause = isInFlight ? unknown(failure.message) : failure
    const isRefunded = cause.code !== OUTCOME_UNKNOWN
    const recorded = Number(row.price) > 0 ? withRefund(cause, isRefunded ? 'refunded' : 'kept') : cause
    const columns = { ...failureColumn(recorded), status: 'failed', finished_at: nowMs }
    // Removes the job that an operator has named, since it failed.
    const before: StoredJob = intent === undefined ? {} : { intent }
    await tx.run(...update('runs', String(row.id), { ...columns, ...(isNamed && jobColumns(before)) }))
    if (isRefunded) refunded += await refundRun(tx, row, nowMs)
  }
  return { runs: rows.length, refunded }
}

const jobColumns = (job: StoredJob) => ({ job: JSON.stringify(job), job_key: jobKeyOf(job) })

const unknown = (reason: string): RunFailure => ({
  code: OUTCOME_UNKNOWN,
  message: new OutcomeUnknown(reason).message,
})

/** Gives back the price of a run that the transaction has locked, and returns it. */
async function refundRun(tx: Transaction, row: Row, nowMs: number): Promise<number> {
  const { id, account_id, key_id } = row
  const price = Number(row.price)
  if (price === 0) return 0
  const entry = { kind: 'refund', amount: price, run_id: String(id), created_at: nowMs } as const
  await Promise.all([
    moveBalance(tx, Number(account_id), { ...entry, key_id: key_id as number | null }),
    key_id !== null && moveSpend(tx, Number(key_id), -price, 0),
  ])
  return price
}

async function decideUnknown(
  tx: Transaction,
  row: Row,
  { adopt, nowMs }: UnknownDecision,
): Promise<DecidedRun> {
  const id = String(row.id)
  const stored = jobOf(row.job)
  const failure = failureOf(row.failure)
  const refund = `SELECT 1 FROM credits WHERE run_id = :id AND kind = 'refund'`
  const isRefunded = failure?.code === REFUNDED || (await tx.get(refund, { id })) !== undefined
  if (isRefunded) return adopt === undefined ? 'done' : 'other'
  const isEnded = (row.status === 'failed' || row.status === 'canceled') && !row.stopping
  const isFollowed = adopt !== undefined && stored?.handle?.id === adopt.handle?.id
  if (!isEnded) return isFollowed ? 'done' : 'other'
  if (failure?.code !== OUTCOME_UNKNOWN) return 'other'
  // A server that sends the result with its answer has no place where jobs can be found.
  const hasNoJob = stored?.intent !== undefined && (stored.handle ?? stored.intent).place === undefined
  if (adopt !== undefined && hasNoJob) return 'no job'
  if (adopt === undefined) {
    await refundRun(tx, row, nowMs)
    const decided = { code: REFUNDED, message: failure.message }
    const recorded = Number(row.price) > 0 ? withRefund(decided, 'refunded') : decided
    // Without the key, since another run may adopt the same job later.
    await tx.run(...update('runs', id, { ...failureColumn(recorded), job_key: null }))
    return 'done'
  }
  const named = jobColumns({ ...(stored?.intent && { intent: stored.intent }), ...adopt, isNamed: true })
  const ofOthers = 'SELECT 1 FROM runs WHERE job_key = :key AND id <> :id'
  if ((await tx.get(ofOthers, { key: named.job_key, id })) !== undefined) return 'taken'
  const stopping = { ...failureColumn(canceled('undecided')), stopping: true, finished_at: nowMs }
  await tx.run(...update('runs', id, { ...named, ...(row.status === 'canceled' && stopping) }))
  if (row.status === 'failed') await requeue(tx, id)
  return 'done'
}
