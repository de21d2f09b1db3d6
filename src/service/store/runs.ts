/** Runs, from the create to the end. The queue is in `queue.ts`. */
import { writeJson } from '../../protocol/json.js'
import { OUTCOME_UNKNOWN, REFUNDED } from '../../protocol/run-state.js'
import { OutcomeUnknown, type StoredJob } from '../engines/engine.js'
import type { AccountState } from '../rules/key-checks.js'
import type {
  AddedRun,
  CanceledRun,
  DecidedRun,
  FailedRuns,
  NewRun,
  Store,
  UnknownDecision,
} from './contract.js'
import { backInQueue, MINE, mine } from './lease.js'
import {
  accountStateOfRow,
  DOCUMENT,
  failureOf,
  hasJob,
  isSet,
  jobKeyOf,
  jobOf,
  modelOfRow,
  newRunColumns,
  outputOfRow,
  RUN_COLUMNS,
  runOfRow,
} from './rows.js'
import { canceled, type RunFailure, withRefund } from './run.js'
import {
  checkSession,
  type Database,
  type Dialect,
  hasNul,
  insert,
  type Row,
  repeatable,
  type Transaction,
} from './sql.js'
import { MOVE_BALANCE } from './statements.js'

/**
 * The status of a run changes only as `LOCAL_MOVES` (protocol/run-state.ts) allows: each statement that changes it also
 * checks the previous status.
 */
export const runStatements = (dialect: Dialect) => {
  const { inList, lock, index, now } = dialect
  return {
    // Locks the account and then its key, until the run is charged.
    accountState: `
    SELECT keys.spent, keys.spend_limit, keys.used, keys.quota, keys.disabled, keys.expires_at, accounts.balance,
      accounts.banned
    FROM accounts JOIN keys ON keys.account_id = accounts.id
    WHERE accounts.id = $1 AND keys.id = $2${lock()}`,

    // The same for a run without a key.
    keylessState: `
    SELECT 0 AS spent, NULL AS spend_limit, 0 AS used, NULL AS quota, false AS disabled, NULL AS expires_at, balance, banned
    FROM accounts WHERE id = $1${lock()}`,

    existing: `SELECT id FROM runs WHERE id = $1`,

    createdBefore: `
    SELECT id, request FROM runs
    WHERE account_id = $1 AND idempotency_key = $2 AND created_at > $3 ORDER BY sequence DESC LIMIT 1`,

    // Fair queueing: behind the last queued run of the account, else level with the head of the queue. The account is locked,
    // so nobody else numbers its runs. `columns`: of the INSERT.
    turnOf(columns: readonly string[]) {
      const parameter = (name: string) => `$${columns.indexOf(name) + 1}`
      const queued = (name: string) =>
        `FROM runs${index(name)} WHERE status = 'queued' AND model = ${parameter('model')}`
      return `coalesce(
      (SELECT max(turn) + 1 ${queued('runs_queued')} AND account_id = ${parameter('account_id')}),
      (SELECT min(turn) ${queued('runs_turn')}), 0)`
    },

    keepDocument: `INSERT INTO documents (hash, document) VALUES ($1, $2) ON CONFLICT DO NOTHING`,

    moveSpend: `UPDATE keys SET spent = spent + $2, used = used + $3 WHERE id = $1`,

    // Executed for every status request, so it reads no other columns. `+ 0` keeps PostgreSQL's planner off the index of
    // the account's runs until a new database has statistics.
    findRun: `SELECT ${RUN_COLUMNS} FROM runs WHERE id = $1 AND account_id + 0 = $2`,

    outputsOfRun: `SELECT * FROM outputs WHERE run_id = $1 ORDER BY position`,

    findOutput: `SELECT token, name, content_type, bytes, sha256 FROM outputs WHERE token = $1 AND name = $2`,

    finish: `UPDATE runs SET status = 'succeeded', finished_at = $4 WHERE ${MINE} AND status = 'processing'`,

    hasOutputs: `SELECT 1 FROM outputs WHERE run_id = $1 AND token ${inList('$2')}`,

    lockRendering: `
    SELECT id, account_id, key_id, price, job FROM runs
    WHERE ${MINE} AND status = 'processing'${lock()}`,

    fail: `UPDATE runs SET status = 'failed', finished_at = $2, failure = $3 WHERE id = $1`,

    lockRun: `SELECT id, account_id, key_id, price, status, stopping, failure, job FROM runs WHERE id = $1${lock()}`,

    cancel: `
    UPDATE runs SET status = 'canceled', finished_at = $2, failure = $3, stopping = $4
    WHERE id = $1 AND status IN ('queued', 'processing')`,

    findStopping: `
    SELECT id, model, owner, job, finished_at, ${DOCUMENT} FROM runs${index('runs_stopping')}
    WHERE stopping AND (owner = $1 OR lease_until <= ${now})`,

    settle: `UPDATE runs SET stopping = false, failure = $2 WHERE id = $1 AND stopping`,

    resume: `
    UPDATE runs SET ${backInQueue(dialect)}, stopping = false, finished_at = NULL, failure = NULL
    WHERE id = $1 AND stopping`,

    // A job is true whoever has the run now: who holds the intent sent the only create.
    saveJob: `
    UPDATE runs SET job = $4, job_key = $5
    WHERE id = $1 AND (owner = $2 AND attempt = $3 AND (status = 'processing' OR stopping) OR job = $6)`,

    jobsOfOthers: `SELECT job FROM runs WHERE job_key ${inList('$1')} AND id <> $2`,

    keepJob: `UPDATE runs SET job = $2, job_key = $3 WHERE id = $1`,

    refunded: `SELECT 1 FROM credits WHERE run_id = $1 AND kind = 'refund'`,

    explain: `UPDATE runs SET failure = $2 WHERE id = $1`,

    adopt: `
    UPDATE runs SET ${backInQueue(dialect)}, finished_at = NULL, failure = NULL, job = $2, job_key = $3 WHERE id = $1`,

    cancelAdopted: `
    UPDATE runs SET stopping = true, finished_at = $4, failure = $5, job = $2, job_key = $3 WHERE id = $1`,

    expireFiles: `
    UPDATE runs SET files = 'removing'
    WHERE sequence IN (
      SELECT sequence FROM runs${index('runs_with_files')}
      WHERE finished_at IS NOT NULL AND files <> 'removed' AND finished_at < $1 ORDER BY finished_at LIMIT ${MAX_EXPIRED})
    RETURNING id`,

    removeFiles: `
    UPDATE runs SET files = 'removing'
    WHERE id = $1 AND account_id + 0 = $2 AND finished_at IS NOT NULL AND files <> 'removed'`,

    filesRemoved: `UPDATE runs SET files = 'removed' WHERE id ${inList('$1')}`,

    databaseId: `SELECT database_id FROM format`,
  }
}

/** Maximum number of runs whose files one call marks. */
export const MAX_EXPIRED = 100

type RunStatements = ReturnType<typeof runStatements>

export function createRunStore(database: Database) {
  const { get, all, run, dialect } = database
  const SQL = runStatements(dialect)
  const fail = createFailure(dialect)
  return {
    addRun: (run, check) =>
      repeatable(database, async (tx) => {
        if (run.by !== undefined) await checkSession(tx, dialect, run.by)
        return await addRun(tx, SQL, run, check)
      }),
    async findCreated(accountId, { key, request, sinceMs }) {
      const row = await get(SQL.createdBefore, accountId, key, sinceMs)
      return row?.request === request ? String(row.id) : undefined
    },
    async findRun(id, accountId) {
      const row = hasNul(id) ? undefined : await get(SQL.findRun, id, accountId)
      return row && runOfRow(row, row.status === 'succeeded' ? await all(SQL.outputsOfRun, id) : [])
    },
    async findOutput(token, name) {
      const row = hasNul(token, name) ? undefined : await get(SQL.findOutput, token, name)
      return row && outputOfRow(row)
    },
    saveJob: async (claimed, job, intent) => {
      const before = intent === undefined ? null : JSON.stringify({ intent })
      return (await run(SQL.saveJob, ...mine(claimed), JSON.stringify(job), jobKeyOf(job), before)) > 0
    },
    decideUnknown: (id, decision) => repeatable(database, (tx) => decideUnknown(tx, SQL, id, decision)),
    finishRun: (claimed, outputs) =>
      repeatable(database, async (tx) => {
        if ((await tx.run(SQL.finish, ...mine(claimed), claimed.nowMs)) === 0) {
          // Each render has its own token: these outputs are there only if an earlier call was committed.
          const tokens = outputs.map(({ token }) => token)
          return (await tx.get(SQL.hasOutputs, claimed.id, tokens)) !== undefined
        }
        for (const [position, { contentType, ...output }] of outputs.entries())
          await tx.run(
            ...insert('outputs', { run_id: claimed.id, position, content_type: contentType, ...output }),
          )
        return true
      }),
    failRun: (claimed, failure) =>
      repeatable(database, async (tx) => {
        const row = await tx.get(SQL.lockRendering, ...mine(claimed))
        return row && (await fail(tx, [row], failure, claimed.nowMs))
      }),
    cancelRun: async (id, nowMs, accountId, by) =>
      hasNul(id)
        ? undefined
        : await repeatable(database, async (tx) => {
            if (by !== undefined) await checkSession(tx, dialect, by)
            return await cancelRun(tx, SQL, { id, nowMs, accountId })
          }),
    findStopping: async (worker) =>
      (await all(SQL.findStopping, worker)).map((row) => ({
        ...modelOfRow(row),
        canceledAtMs: Number(row.finished_at),
        owner: String(row.owner),
        stored: jobOf(row.job),
      })),
    settleCanceled: (id, end, nowMs, stored) =>
      repeatable(database, async (tx) => {
        const row = await tx.get(SQL.lockRun, id)
        if (row === undefined || !isSet(row.stopping)) return undefined
        // A worker that still renders the run may have sent it in between.
        if (JSON.stringify(jobOf(row.job)) !== JSON.stringify(stored)) return undefined
        if (end === 'resumed') await tx.run(SQL.resume, id)
        else await tx.run(SQL.settle, id, JSON.stringify(canceled(end, Number(row.price))))
        return { runs: 1, refunded: end === 'refunded' ? await refundRun(tx, SQL, row, nowMs) : 0 }
      }),
    expireFiles: async (beforeMs) => (await all(SQL.expireFiles, beforeMs)).map(({ id }) => String(id)),
    filesRemoved: async (ids) => void (await run(SQL.filesRemoved, ids)),
    removeFiles: (runId, accountId, by) =>
      repeatable(database, async (tx) => {
        await checkSession(tx, dialect, by)
        return (await tx.run(SQL.removeFiles, runId, accountId)) > 0
      }),
    databaseId: async () => String((await get(SQL.databaseId))?.database_id),
  } satisfies Partial<Store>
}

async function cancelRun(
  tx: Transaction,
  SQL: RunStatements,
  {
    id,
    nowMs,
    accountId,
  }: { readonly id: string; readonly nowMs: number; readonly accountId: number | undefined },
): Promise<CanceledRun | undefined> {
  const row = await tx.get(SQL.lockRun, id)
  if (row === undefined) return undefined
  const owner = Number(row.account_id)
  if (accountId !== undefined && accountId !== owner) return undefined
  // A queued run can have a job that an earlier attempt left to its followers.
  const isQueued = row.status === 'queued' && !hasJob(row.job)
  if (row.status !== 'queued' && row.status !== 'processing')
    return { accountId: owner, isCanceled: false, refunded: 0 }
  const failure = canceled(isQueued ? 'refunded' : 'undecided', Number(row.price))
  await tx.run(SQL.cancel, id, nowMs, JSON.stringify(failure), !isQueued)
  return { accountId: owner, isCanceled: true, refunded: isQueued ? await refundRun(tx, SQL, row, nowMs) : 0 }
}

async function addRun(
  tx: Transaction,
  SQL: RunStatements,
  run: NewRun,
  check: (account: AccountState) => void,
): Promise<AddedRun> {
  const { id, accountId, keyId = null, price, carried, idempotency, createdAtMs } = run
  // Sends the statements at once. The first one locks the account, so a commit in progress has ended before the others
  // look for its runs.
  const [state, existing, before] = await Promise.all([
    keyId === null ? tx.get(SQL.keylessState, accountId) : tx.get(SQL.accountState, accountId, keyId),
    tx.mayHaveCommitted ? tx.get(SQL.existing, id) : undefined,
    idempotency && tx.get(SQL.createdBefore, accountId, idempotency.key, idempotency.sinceMs),
  ])
  if (existing !== undefined) return { id }
  if (before !== undefined)
    return before.request === idempotency?.request ? { id: String(before.id) } : { refused: 'key_reused' }
  checkState(state, run, check)
  if (run.onlyCheck) return { isAcceptable: true }
  const columns = { ...newRunColumns(run), status: 'queued', input: writeJson(run.input) }
  const entry = { account_id: accountId, kind: 'charge', amount: -price, run_id: id, key_id: keyId }
  await Promise.all([
    carried && tx.run(SQL.keepDocument, carried.hash, carried.json),
    tx.run(...insert('runs', columns, { turn: SQL.turnOf(Object.keys(columns)) })),
    keyId !== null && tx.run(SQL.moveSpend, keyId, price, 1),
    price > 0 && tx.run(MOVE_BALANCE, accountId, -price),
    price > 0 && tx.run(...insert('credits', { ...entry, created_at: createdAtMs })),
  ])
  return { id }
}

function checkState(
  state: Row | undefined,
  { accountId, keyId, price }: NewRun,
  check: (account: AccountState) => void,
): void {
  if (state === undefined)
    throw new Error(
      keyId === undefined ? `Account ${accountId} does not exist.` : `Key ${keyId} does not exist.`,
    )
  if (keyId !== undefined || price > 0) check(accountStateOfRow(state))
}

/**
 * Creates a function that fails runs and refunds their prices, within the transaction that has locked the runs. `rows`:
 * id, account, key, price and job of each. The outcome of a run with a create in flight is unknown, after any failure.
 */
export function createFailure(dialect: Dialect) {
  const SQL = runStatements(dialect)
  return async (
    tx: Transaction,
    rows: readonly Row[],
    failure: RunFailure,
    nowMs: number,
  ): Promise<FailedRuns> => {
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
        tx.run(SQL.fail, id, nowMs, JSON.stringify(recorded)),
        isNamed && tx.run(SQL.keepJob, id, JSON.stringify(before), jobKeyOf(before)),
      ])
      if (isRefunded) refunded += await refundRun(tx, SQL, row, nowMs)
    }
    return { runs: rows.length, refunded }
  }
}

const unknown = (reason: string): RunFailure => ({
  code: OUTCOME_UNKNOWN,
  message: new OutcomeUnknown(reason).message,
})

/** Gives back the price of a run that the transaction has locked, and returns it. */
async function refundRun(tx: Transaction, SQL: RunStatements, row: Row, nowMs: number): Promise<number> {
  const [id, accountId, price] = [String(row.id), Number(row.account_id), Number(row.price)]
  const keyId = row.key_id === null ? null : Number(row.key_id)
  if (price === 0) return 0
  await Promise.all([
    tx.run(MOVE_BALANCE, accountId, price),
    keyId !== null && tx.run(SQL.moveSpend, keyId, -price, 0),
    tx.run(
      ...insert('credits', {
        ...{
          account_id: accountId,
          kind: 'refund',
          amount: price,
          run_id: id,
          key_id: keyId,
          created_at: nowMs,
        },
      }),
    ),
  ])
  return price
}

async function decideUnknown(
  tx: Transaction,
  SQL: RunStatements,
  id: string,
  { adopt, nowMs }: UnknownDecision,
): Promise<DecidedRun> {
  const row = hasNul(id) ? undefined : await tx.get(SQL.lockRun, id)
  if (row === undefined) return 'missing'
  const stored = jobOf(row.job)
  const named = adopt && {
    ...(stored?.intent && { intent: stored.intent }),
    ...adopt,
    isNamed: true as const,
  }
  const isFollowed = adopt !== undefined && stored?.handle?.id === adopt.handle?.id
  const failure = failureOf(row.failure)
  const isRefunded = failure?.code === REFUNDED || (await tx.get(SQL.refunded, id)) !== undefined
  if (isRefunded) return named === undefined ? 'done' : 'other'
  const isEnded = (row.status === 'failed' || row.status === 'canceled') && !isSet(row.stopping)
  if (!isEnded) return isFollowed ? 'done' : 'other'
  if (failure?.code !== OUTCOME_UNKNOWN) return 'other'
  if (named === undefined) {
    await refundRun(tx, SQL, row, nowMs)
    const decided = { code: REFUNDED, message: failure.message }
    const recorded = Number(row.price) > 0 ? withRefund(decided, 'refunded') : decided
    await tx.run(SQL.explain, id, JSON.stringify(recorded))
    // A job that is found later may be that of another run.
    await tx.run(SQL.keepJob, id, row.job as string | null, null)
    return 'done'
  }
  const key = jobKeyOf(named)
  if ((await tx.get(SQL.jobsOfOthers, [`${key}`], id)) !== undefined) return 'taken'
  const job = JSON.stringify(named)
  if (row.status === 'failed') await tx.run(SQL.adopt, id, job, key)
  else await tx.run(SQL.cancelAdopted, id, job, key, nowMs, JSON.stringify(canceled('undecided')))
  return 'done'
}
