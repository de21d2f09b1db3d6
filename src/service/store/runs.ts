/**
 * Runs, from the create to the end. The queue is in `queue.ts`. The status of a run changes only as `LOCAL_MOVES`
 * (protocol/run-state.ts) allows: each statement that changes it also checks the previous status.
 */
import { writeJson } from '../../protocol/json.js'
import { OUTCOME_UNKNOWN, REFUNDED } from '../../protocol/run-state.js'
import { type JobIntent, OutcomeUnknown, type StoredJob } from '../engines/engine.js'
import { type AccountState, checkBudget } from '../rules/key-checks.js'
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
  type Dialect,
  hasNul,
  insert,
  type Row,
  repeatable,
  type SessionProof,
  type Transaction,
  type Values,
} from './sql.js'

/** The run with this claim. */
export const MINE = 'id = :id AND owner = :owner AND attempt = :attempt'
export const mine = ({ id, owner, attempt }: ClaimedRun) => ({ id, owner, attempt })

/** A run that comes back goes to the head of the queue of its model: its own turn may be far from the others. */
export const backInQueue = ({ index }: Dialect): string => `
      status = 'queued', owner = '', started_at = NULL, lease_until = 0, turn = coalesce((
        SELECT min(head.turn) FROM runs AS head${index('runs_turn')}
        WHERE head.status = 'queued' AND head.model = runs.model), 0)`

/** Maximum number of runs whose files one call marks. */
export const MAX_EXPIRED = 100

const CREATED_BEFORE = `
    SELECT id, request FROM runs
    WHERE account_id = :accountId AND idempotency_key = :key AND created_at > :sinceMs ORDER BY sequence DESC LIMIT 1`

const repeatedRun = (before: Row | undefined, idempotency: Idempotency | undefined): AddedRun | undefined =>
  before && (before.request === idempotency?.request ? { id: String(before.id) } : { refused: 'key_reused' })

const moveSpend = (tx: Transaction, keyId: number, price: number, used: number) =>
  tx.run('UPDATE keys SET spent = spent + :price, used = used + :used WHERE id = :keyId', {
    keyId,
    price,
    used,
  })

const explain = (tx: Transaction, id: string, failure: RunFailure, more: Values = {}) => {
  const columns = { failure: JSON.stringify(failure), ...more }
  const set = Object.keys(columns).map((name) => `${name} = :${name}`)
  return tx.run(`UPDATE runs SET ${set} WHERE id = :id`, { ...columns, id })
}

/** The job of a run that has ended. An account that pays a price is not told what its run cost. */
const JOB_OF_FREE = 'CASE WHEN price = 0 AND finished_at IS NOT NULL THEN job END'

const keepJob = (tx: Transaction, id: string, job: string | null, key: string | null) =>
  tx.run('UPDATE runs SET job = :job, job_key = :key WHERE id = :id', { id, job, key })

export function createRunStore(database: Database) {
  const { get, all, dialect } = database
  return {
    /**
     * Adds the run, charges its price and counts it against its key, atomically. `check` receives the current state of
     * key and account, and throws to refuse the run; by default a `Refusal`: 401 for the key, 403 for the account or the spend
     * limit, 429 for the quota, 402 for the balance. It is not called for a free run without a stored key, nor for a repeated
     * create.
     */
    addRun: (
      run: NewRun,
      check = (account: AccountState) => checkBudget(account, run.price, run.createdAtMs),
    ): Promise<AddedRun> =>
      repeatable(database, async (tx) => {
        await checkSession(tx, dialect, run.by)
        return await addRun(tx, dialect, run, check)
      }),
    /** Returns the run that this same request has created, or the refusal if another request has used its key. */
    async findCreated(accountId: number, idempotency: Idempotency): Promise<AddedRun | undefined> {
      const { key, sinceMs } = idempotency
      return repeatedRun(await get(CREATED_BEFORE, { accountId, key, sinceMs }), idempotency)
    },
    async findRun(id: string, accountId: number): Promise<StoredRun | undefined> {
      if (hasNul(id)) return undefined
      // `+ 0` keeps PostgreSQL's planner off the index of the account's runs until a new database has statistics.
      const find = `SELECT ${RUN_COLUMNS}, ${JOB_OF_FREE} AS job FROM runs WHERE id = :id AND account_id + 0 = :accountId`
      const outputs = `SELECT ${OUTPUT_COLUMNS} FROM outputs WHERE run_id = :id ORDER BY position`
      const row = await get(find, { id, accountId })
      return row && runOf(row, row.status === 'succeeded' ? await all(outputs, { id }) : [])
    },
    async findOutput(token: string, name: string): Promise<StoredOutput | undefined> {
      const find = `
        SELECT token, name, content_type, bytes, sha256 FROM outputs WHERE token = :token AND name = :name`
      const row = hasNul(token, name) ? undefined : await get(find, { token, name })
      return row && recordOf(row)
    },
    /**
     * Decides on a run whose outcome is unknown: refunds it, or returns it to the queue with the job that its provider has
     * for it; the job of a canceled run is then canceled. A repeat of the same decision changes nothing.
     */
    decideUnknown: (id: string, decision: UnknownDecision): Promise<DecidedRun> =>
      repeatable(database, async (tx) => {
        const row = hasNul(id) ? undefined : await lockRun(tx, dialect, id)
        return row === undefined ? 'missing' : await decideUnknown(tx, dialect, row, decision)
      }),
    /**
     * Cancels a run, and refunds it if it is queued. A run in processing is canceled at once, and then stopped and settled by
     * a worker. A run that has ended stays as it is. Returns undefined if the account, or any without `accountId`, has no
     * such run.
     */
    cancelRun: async (
      id: string,
      nowMs: number,
      accountId?: number,
      by?: SessionProof,
    ): Promise<CanceledRun | undefined> =>
      hasNul(id)
        ? undefined
        : await repeatable(database, async (tx) => {
            await checkSession(tx, dialect, by)
            const row = await lockRun(tx, dialect, id)
            const isOfAccount = accountId === undefined || accountId === Number(row?.account_id)
            return row && isOfAccount ? await cancelRun(tx, row, nowMs) : undefined
          }),
  }
}

/** What a worker stores about the runs that it has claimed. */
export function createAttemptStore(database: Database) {
  const { all, run, dialect } = database
  const { inList, lock, index, now } = dialect
  return {
    /**
     * Stores the job of the run, in place of an earlier one. Returns false if the change is refused. A job is true whoever has
     * the run now: the job of the create with `intent` is stored by whoever sent it.
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
      repeatable(database, async (tx) => {
        const finish = `
          UPDATE runs SET status = 'succeeded', finished_at = :nowMs WHERE ${MINE} AND status = 'processing'`
        if ((await tx.run(finish, { ...mine(claimed), nowMs: claimed.nowMs })) === 0) {
          // Each render has its own token: these outputs are there only if an earlier call was committed.
          const find = `SELECT 1 FROM outputs WHERE run_id = :id AND token ${inList(':tokens')}`
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
      repeatable(database, async (tx) => {
        const lockMine = `
          SELECT id, account_id, key_id, price, job FROM runs WHERE ${MINE} AND status = 'processing'${lock()}`
        const row = await tx.get(lockMine, mine(claimed))
        return row && (await failRuns(tx, [row], failure, claimed.nowMs))
      }),
    /** Finds the canceled runs that must be stopped: the runs of this worker, and those whose lease ran out. */
    findStopping: async (worker: string): Promise<readonly StoppingRun[]> => {
      const find = `
        SELECT id, model, owner, job, finished_at AS canceled_at, ${DOCUMENT} FROM runs${index('runs_stopping')}
        WHERE stopping AND (owner = :worker OR lease_until <= ${now})`
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
      repeatable(database, async (tx) => {
        const row = await lockRun(tx, dialect, id)
        // A worker that still renders the run may have sent it in between.
        if (!row?.stopping || JSON.stringify(jobOf(row.job)) !== JSON.stringify(stored)) return undefined
        if (end === 'resumed')
          await tx.run(
            `UPDATE runs SET ${backInQueue(dialect)}, stopping = false, finished_at = NULL, failure = NULL WHERE id = :id`,
            { id },
          )
        else await explain(tx, id, canceled(end, Number(row.price)), { stopping: false })
        return { runs: 1, refunded: end === 'refunded' ? await refundRun(tx, row, nowMs) : 0 }
      }),
  }
}

/** The files of ended runs, and the database itself. */
export function createFileRecords(database: Database) {
  const { get, all, run, dialect } = database
  const { inList, index } = dialect
  const expirable = `finished_at IS NOT NULL AND files <> 'removed'`
  return {
    /**
     * Marks runs that ended before `beforeMs` as having no files, and returns their ids, at most `MAX_EXPIRED`. Returns them
     * again until `filesRemoved`.
     */
    expireFiles: async (beforeMs: number): Promise<readonly string[]> => {
      const expire = `
        UPDATE runs SET files = 'removing'
        WHERE sequence IN (
          SELECT sequence FROM runs${index('runs_with_files')}
          WHERE ${expirable} AND finished_at < :beforeMs ORDER BY finished_at LIMIT ${MAX_EXPIRED})
        RETURNING id`
      return (await all(expire, { beforeMs })).map(({ id }) => String(id))
    },
    filesRemoved: async (ids: readonly string[]): Promise<void> =>
      void (await run(`UPDATE runs SET files = 'removed' WHERE id ${inList(':ids')}`, { ids })),
    /** Returns the id of this database. A copy of it, restored elsewhere, has another one. */
    databaseId: async (): Promise<string> =>
      String((await get('SELECT database_id FROM format'))?.database_id),
    /** Writes to the database without changing anything. Rejects if a change would fail. */
    checkWritable: async (): Promise<void> =>
      void (await run('UPDATE format SET checked_at = checked_at + 1')),
  }
}

const lockRun = (tx: Transaction, { lock }: Dialect, id: string) =>
  tx.get(
    `SELECT id, account_id, key_id, price, status, stopping, failure, job FROM runs WHERE id = :id${lock()}`,
    { id },
  )

async function addRun(
  tx: Transaction,
  { lock, index }: Dialect,
  run: NewRun,
  check: (account: AccountState) => void,
): Promise<AddedRun> {
  const { id, accountId, keyId, price, carried, idempotency, createdAtMs } = run
  // Locks the account and then its key, until the run is charged.
  const state =
    keyId === undefined
      ? `SELECT 0 AS spent, NULL AS spend_limit, 0 AS used, NULL AS quota, false AS disabled, NULL AS expires_at, balance, banned
         FROM accounts WHERE id = :accountId${lock()}`
      : `SELECT keys.spent, keys.spend_limit, keys.used, keys.quota, keys.disabled, keys.expires_at, accounts.balance,
           accounts.banned
         FROM accounts JOIN keys ON keys.account_id = accounts.id
         WHERE accounts.id = :accountId AND keys.id = :keyId${lock()}`
  // Sends the statements at once. The first one locks the account, so a commit in progress has ended before the others
  // look for its runs.
  const [account, existing, before] = await Promise.all([
    tx.get(state, { accountId, keyId }),
    tx.mayHaveCommitted ? tx.get('SELECT id FROM runs WHERE id = :id', { id }) : undefined,
    idempotency && tx.get(CREATED_BEFORE, { accountId, key: idempotency.key, sinceMs: idempotency.sinceMs }),
  ])
  if (existing !== undefined) return { id }
  const repeated = repeatedRun(before, idempotency)
  if (repeated !== undefined) return repeated
  if (account === undefined)
    throw new Error(
      keyId === undefined ? `Account ${accountId} does not exist.` : `Key ${keyId} does not exist.`,
    )
  if (keyId !== undefined || price > 0) check(recordOf(account))
  if (run.onlyCheck) return { isAcceptable: true }
  // Fair queueing: behind the last queued run of the account, else level with the head of the queue. The account is locked,
  // so nobody else numbers its runs.
  const turn = `coalesce(
      (SELECT max(turn) + 1 FROM runs${index('runs_queued')} WHERE status = 'queued' AND model = :model AND account_id = :account_id),
      (SELECT min(turn) FROM runs${index('runs_turn')} WHERE status = 'queued' AND model = :model), 0)`
  const columns = { ...newRunColumns(run), status: 'queued', input: writeJson(run.input) }
  const charge = { run_id: id, key_id: keyId, created_at: createdAtMs }
  await Promise.all([
    carried &&
      tx.run(
        ...insert(
          'documents',
          { hash: carried.hash, document: carried.json },
          { after: 'ON CONFLICT DO NOTHING' },
        ),
      ),
    tx.run(...insert('runs', columns, { more: { turn } })),
    keyId !== undefined && moveSpend(tx, keyId, price, 1),
    price > 0 && moveBalance(tx, accountId, { kind: 'charge', amount: -price, ...charge }),
  ])
  return { id }
}

async function cancelRun(tx: Transaction, row: Row, nowMs: number): Promise<CanceledRun> {
  const accountId = Number(row.account_id)
  // A queued run can have a job that an earlier attempt left to its followers.
  const isQueued = row.status === 'queued' && !hasJob(row.job)
  if (row.status !== 'queued' && row.status !== 'processing')
    return { accountId, isCanceled: false, refunded: 0 }
  const failure = canceled(isQueued ? 'refunded' : 'undecided', Number(row.price))
  const end = { status: 'canceled', finished_at: nowMs, stopping: !isQueued }
  await explain(tx, String(row.id), failure, end)
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
    const id = String(row.id)
    const { intent, handle, end, isNamed = false } = jobOf(row.job) ?? {}
    // Also a paid job that the provider has not ended.
    const mayContinue = handle !== undefined && handle.place?.costs !== false && end !== 'over'
    const isInFlight = failure.code !== OUTCOME_UNKNOWN && (intent !== undefined || isNamed || mayContinue)
    const cause = isInFlight ? unknown(failure.message) : failure
    const isRefunded = cause.code !== OUTCOME_UNKNOWN
    const recorded = Number(row.price) > 0 ? withRefund(cause, isRefunded ? 'refunded' : 'kept') : cause
    const before: StoredJob = intent === undefined ? {} : { intent }
    await Promise.all([
      explain(tx, id, recorded, { status: 'failed', finished_at: nowMs }),
      isNamed && keepJob(tx, id, JSON.stringify(before), jobKeyOf(before)),
    ])
    if (isRefunded) refunded += await refundRun(tx, row, nowMs)
  }
  return { runs: rows.length, refunded }
}

const unknown = (reason: string): RunFailure => ({
  code: OUTCOME_UNKNOWN,
  message: new OutcomeUnknown(reason).message,
})

/** Gives back the price of a run that the transaction has locked, and returns it. */
async function refundRun(tx: Transaction, row: Row, nowMs: number): Promise<number> {
  const price = Number(row.price)
  if (price === 0) return 0
  const keyId = row.key_id === null ? undefined : Number(row.key_id)
  await Promise.all([
    moveBalance(tx, Number(row.account_id), {
      kind: 'refund',
      amount: price,
      run_id: String(row.id),
      key_id: keyId,
      created_at: nowMs,
    }),
    keyId !== undefined && moveSpend(tx, keyId, -price, 0),
  ])
  return price
}

async function decideUnknown(
  tx: Transaction,
  dialect: Dialect,
  row: Row,
  { adopt, nowMs }: UnknownDecision,
): Promise<DecidedRun> {
  const id = String(row.id)
  const stored = jobOf(row.job)
  const named = adopt && {
    ...(stored?.intent && { intent: stored.intent }),
    ...adopt,
    isNamed: true as const,
  }
  const isFollowed = adopt !== undefined && stored?.handle?.id === adopt.handle?.id
  const failure = failureOf(row.failure)
  const refund = `SELECT 1 FROM credits WHERE run_id = :id AND kind = 'refund'`
  const isRefunded = failure?.code === REFUNDED || (await tx.get(refund, { id })) !== undefined
  if (isRefunded) return named === undefined ? 'done' : 'other'
  const isEnded = (row.status === 'failed' || row.status === 'canceled') && !row.stopping
  if (!isEnded) return isFollowed ? 'done' : 'other'
  if (failure?.code !== OUTCOME_UNKNOWN) return 'other'
  if (named === undefined) {
    await refundRun(tx, row, nowMs)
    const decided = { code: REFUNDED, message: failure.message }
    await explain(tx, id, Number(row.price) > 0 ? withRefund(decided, 'refunded') : decided)
    // A job that is found later may be that of another run.
    await keepJob(tx, id, row.job as string | null, null)
    return 'done'
  }
  const key = jobKeyOf(named)
  const ofOthers = `SELECT job FROM runs WHERE job_key ${dialect.inList(':keys')} AND id <> :id`
  if ((await tx.get(ofOthers, { keys: [`${key}`], id })) !== undefined) return 'taken'
  await keepJob(tx, id, JSON.stringify(named), key)
  if (row.status === 'failed')
    await tx.run(
      `UPDATE runs SET ${backInQueue(dialect)}, finished_at = NULL, failure = NULL WHERE id = :id`,
      { id },
    )
  else await explain(tx, id, canceled('undecided'), { stopping: true, finished_at: nowMs })
  return 'done'
}
