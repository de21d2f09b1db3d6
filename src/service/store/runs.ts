/** Runs, from the create to the end. The queue is in `queue.ts`. */
import { writeJson } from '../../protocol/json.js'
import { OUTCOME_UNKNOWN } from '../../protocol/run-state.js'
import { type JobHandle, type JobIntent, OutcomeUnknown, type StoredJob } from '../engines/engine.js'
import type { AccountState } from '../rules/key-checks.js'
import { canceled, type RunFailure, withRefund } from '../stored-run.js'
import type {
  AddedRun,
  CanceledRun,
  ClaimedRun,
  DecidedRun,
  FailedRuns,
  FileName,
  NewRun,
  Store,
  UnknownDecision,
} from './contract.js'
import {
  accountStateOfRow,
  failureOf,
  hasJob,
  isSet,
  jobKeyOf,
  jobOf,
  newRunColumns,
  outputOfRow,
  RUN_COLUMNS,
  runOfRow,
} from './rows.js'
import {
  checkSession,
  type Database,
  type Dialect,
  hasNul,
  type Row,
  repeatable,
  type Transaction,
} from './sql.js'
import { ADD_RUN_FILE, MOVE_BALANCE } from './statements.js'

/** Minimum age at which the age of an image is renewed: frequent creates with one image write nothing. */
const RENEWED_AFTER_MS = 30_000

/** The columns of `newRunColumns`, in their order. */
const COLUMNS = [
  ...['id', 'account_id', 'key_id', 'model', 'kind', 'prompt', 'aspect_ratio', 'price', 'created_at'],
  ...['idempotency_key', 'request', 'input'],
]

/**
 * The status of a run changes only as `LOCAL_MOVES` (protocol/run-state.ts) allows: each statement that changes it also
 * checks the previous status.
 */
export const runStatements = ({ inList, lock, index }: Dialect) => ({
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

  // Locks the files until the commit, so that no sweep marks them. Always in the same order, so that creates with the
  // same images do not deadlock.
  liveFiles: `
    SELECT key FROM files WHERE kind IN ('input', 'output') AND key ${inList('$1')} ORDER BY kind, key${lock()}`,

  renewImages: `
    UPDATE files SET used_at = $2 WHERE kind = 'input' AND key ${inList('$1')} AND used_at + ${RENEWED_AFTER_MS} < $2`,

  // Adds no row if another create has recorded the image.
  addImage: `
    INSERT INTO files (kind, key, sha256, bytes, used_at) VALUES ('input', $1, $2, $3, $4) ON CONFLICT DO NOTHING`,

  forgetImages: `DELETE FROM files WHERE kind = 'input' AND key ${inList('$1')}`,

  releaseFiles: `DELETE FROM run_files WHERE run_id = $1`,

  addRun: `
    INSERT INTO runs (${COLUMNS.join(', ')}, status)
    VALUES (${COLUMNS.map((_, at) => `$${at + 1}`).join(', ')}, 'queued')`,

  moveSpend: `UPDATE keys SET spent = spent + $2, used = used + $3 WHERE id = $1`,

  addEntry: `
    INSERT INTO credits (account_id, kind, amount, run_id, key_id, created_at) VALUES ($1, $2, $3, $4, $5, $6)`,

  // Executed for every status request, so it reads no other columns. `+ 0` keeps PostgreSQL's planner off the index of
  // the account's runs until a new database has statistics.
  findRun: `SELECT ${RUN_COLUMNS} FROM runs WHERE id = $1 AND account_id + 0 = $2`,

  outputsOfRun: `SELECT * FROM outputs WHERE run_id = $1 ORDER BY position`,

  findOutput: `SELECT token, name, content_type, bytes, sha256 FROM outputs WHERE token = $1 AND name = $2`,

  finish: `
    UPDATE runs SET status = 'succeeded', finished_at = $3
    WHERE id = $1 AND owner = $2 AND status = 'processing'`,

  addOutput: `
    INSERT INTO outputs (run_id, position, token, name, content_type, bytes, sha256)
    VALUES ($1, $2, $3, $4, $5, $6, $7)`,

  recordOutput: `
    INSERT INTO files (kind, key, sha256, bytes, used_at) VALUES ('output', $1, $2, $3, $4) ON CONFLICT DO NOTHING`,

  hasOutputs: `SELECT 1 FROM outputs WHERE run_id = $1 AND token ${inList('$2')}`,

  lockRendering: `
    SELECT id, account_id, key_id, price, job FROM runs
    WHERE id = $1 AND owner = $2 AND status = 'processing'${lock()}`,

  fail: `UPDATE runs SET status = 'failed', finished_at = $2, failure = $3 WHERE id = $1`,

  lockRun: `SELECT id, account_id, key_id, price, status, stopping, failure, job FROM runs WHERE id = $1${lock()}`,

  cancel: `
    UPDATE runs SET status = 'canceled', finished_at = $2, failure = $3, stopping = $4
    WHERE id = $1 AND status IN ('queued', 'processing')`,

  findStopping: `
    SELECT id, model, owner, job FROM runs${index('runs_stopping')}
    WHERE stopping AND (model ${inList('$2')} OR finished_at < $3)
      AND (owner = $1 OR NOT EXISTS (SELECT 1 FROM workers WHERE workers.id = runs.owner))`,

  settle: `UPDATE runs SET stopping = false, failure = $2 WHERE id = $1 AND stopping`,

  saveJob: `
    UPDATE runs SET job = $3, job_key = $4 WHERE id = $1 AND owner = $2 AND (status = 'processing' OR stopping)`,

  lockOwnJob: `
    SELECT job FROM runs WHERE id = $1 AND owner = $2 AND (status = 'processing' OR stopping)${lock()}`,

  jobsOfOthers: `SELECT job FROM runs WHERE job_key ${inList('$1')} AND id <> $2`,

  keepJob: `UPDATE runs SET job = $2, job_key = $3 WHERE id = $1`,

  refunded: `SELECT 1 FROM credits WHERE run_id = $1 AND kind = 'refund'`,

  explain: `UPDATE runs SET failure = $2 WHERE id = $1`,

  adopt: `
    UPDATE runs SET status = 'queued', owner = '', started_at = NULL, finished_at = NULL, failure = NULL, job = $2,
      job_key = $3
    WHERE id = $1`,
})

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
    saveJob: async ({ id, owner }, job) =>
      (await run(SQL.saveJob, id, owner, JSON.stringify(job), jobKeyOf(job))) > 0,
    adoptJob: (claimed, handle) => repeatable(database, (tx) => adoptJob(tx, SQL, claimed, handle)),
    decideUnknown: (id, decision) => repeatable(database, (tx) => decideUnknown(tx, SQL, id, decision)),
    finishRun: ({ id, owner, nowMs }: ClaimedRun, outputs) =>
      repeatable(database, async (tx) => {
        if ((await tx.run(SQL.finish, id, owner, nowMs)) === 0) {
          // Each render has its own token: these outputs are there only if an earlier call was committed.
          const tokens = outputs.map(({ token }) => token)
          return (await tx.get(SQL.hasOutputs, id, tokens)) !== undefined
        }
        await Promise.all([
          ...outputs.flatMap(({ token, name, contentType, bytes, sha256 }, position) => [
            tx.run(SQL.addOutput, id, position, token, name, contentType, bytes, sha256),
            tx.run(SQL.recordOutput, `${token}/${name}`, sha256, bytes, nowMs),
          ]),
          tx.run(SQL.releaseFiles, id),
        ])
        return true
      }),
    failRun: ({ id, owner, nowMs }, failure) =>
      repeatable(database, async (tx) => {
        const row = await tx.get(SQL.lockRendering, id, owner)
        return row && (await fail(tx, [row], failure, nowMs))
      }),
    cancelRun: async (id, nowMs, accountId, by) =>
      hasNul(id)
        ? undefined
        : await repeatable(database, async (tx) => {
            if (by !== undefined) await checkSession(tx, dialect, by)
            return await cancelRun(tx, SQL, { id, nowMs, accountId })
          }),
    findStopping: async (worker, models, abandonedMs = 0) =>
      (await all(SQL.findStopping, worker, models, abandonedMs)).map(({ id, model, owner, job }) => ({
        id: String(id),
        model: String(model),
        owner: String(owner),
        stored: jobOf(job),
      })),
    settleCanceled: (id, isRefunded, nowMs, stored) =>
      repeatable(database, async (tx) => {
        const row = await tx.get(SQL.lockRun, id)
        if (row === undefined || !isSet(row.stopping)) return undefined
        // A worker that still renders the run may have sent it in between.
        if (JSON.stringify(jobOf(row.job)) !== JSON.stringify(stored)) return undefined
        const end = isRefunded === undefined ? 'abandoned' : isRefunded ? 'refunded' : 'kept'
        const endOfFree = isRefunded === false ? 'charged' : 'free'
        await tx.run(SQL.settle, id, JSON.stringify(canceled(Number(row.price) === 0 ? endOfFree : end)))
        return { runs: 1, refunded: isRefunded ? await refundRun(tx, SQL, row, nowMs) : 0 }
      }),
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
  const failure = canceled(isQueued ? (Number(row.price) > 0 ? 'refunded' : 'free') : 'undecided')
  await tx.run(SQL.cancel, id, nowMs, JSON.stringify(failure), !isQueued)
  await tx.run(SQL.releaseFiles, id)
  return { accountId: owner, isCanceled: true, refunded: isQueued ? await refundRun(tx, SQL, row, nowMs) : 0 }
}

async function addRun(
  tx: Transaction,
  SQL: RunStatements,
  run: NewRun,
  check: (account: AccountState) => void,
): Promise<AddedRun> {
  const { id, accountId, keyId, price, idempotency, files = [] } = run
  // Sends the statements at once. The first one locks the account, so a commit in progress has ended before the others
  // look for its runs.
  const [state, existing, before, live] = await Promise.all([
    keyId === undefined ? tx.get(SQL.keylessState, accountId) : tx.get(SQL.accountState, accountId, keyId),
    tx.mayHaveCommitted ? tx.get(SQL.existing, id) : undefined,
    idempotency && tx.get(SQL.createdBefore, accountId, idempotency.key, idempotency.sinceMs),
    files.length === 0
      ? []
      : tx.all(
          SQL.liveFiles,
          files.map(({ key }) => key),
        ),
  ])
  if (existing !== undefined) return { id }
  if (before !== undefined)
    return before.request === idempotency?.request ? { id: String(before.id) } : { refused: 'key_reused' }
  if (run.onlyCheck === true) {
    checkState(state, run, check)
    return { refused: 'file_removed' }
  }
  const isLive = ({ key, image }: FileName) => image !== undefined || live.some((row) => row.key === key)
  if (files.some((file) => file.kind === 'input' && !isLive(file))) return { refused: 'file_removed' }
  checkState(state, run, check)
  // Always in the same order, as for `liveFiles`.
  const images = files.flatMap(({ key, image }) => (image === undefined ? [] : [{ key, ...image }]))
  for (const { key, sha256, bytes } of images.toSorted((one, other) => (one.sha256 < other.sha256 ? -1 : 1)))
    if ((await tx.run(SQL.addImage, key, sha256, bytes, run.createdAtMs)) === 0) {
      await tx.run(
        SQL.forgetImages,
        images.map((image) => image.key),
      )
      return { refused: 'file_removed' }
    }
  const columns = { ...newRunColumns(run), input: writeJson(run.input) }
  await Promise.all([
    tx.run(SQL.addRun, ...Object.values(columns)),
    files.length > 0 &&
      tx.run(
        SQL.renewImages,
        files.map(({ key }) => key),
        run.createdAtMs,
      ),
    ...files.filter(isLive).map(({ kind, key }) => tx.run(ADD_RUN_FILE, id, kind, key)),
    keyId !== undefined && tx.run(SQL.moveSpend, keyId, price, 1),
    price > 0 && tx.run(MOVE_BALANCE, accountId, -price),
    price > 0 && tx.run(SQL.addEntry, accountId, 'charge', -price, id, keyId ?? null, run.createdAtMs),
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
      const { intent, isNamed = false } = jobOf(row.job) ?? {}
      const isInFlight = failure.code !== OUTCOME_UNKNOWN && (intent !== undefined || isNamed)
      const cause = isInFlight ? unknown(failure.message) : failure
      const isRefunded = cause.code !== OUTCOME_UNKNOWN
      const recorded = Number(row.price) > 0 ? withRefund(cause, isRefunded ? 'refunded' : 'kept') : cause
      const before: StoredJob = intent === undefined ? {} : { intent }
      await Promise.all([
        tx.run(SQL.fail, id, nowMs, JSON.stringify(recorded)),
        tx.run(SQL.releaseFiles, id),
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
    tx.run(SQL.addEntry, accountId, 'refund', price, id, keyId, nowMs),
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
  if (row.status !== 'failed' && row.status !== 'canceled') return isFollowed ? 'done' : 'other'
  const failure = failureOf(row.failure)
  if (failure?.code !== OUTCOME_UNKNOWN) return 'other'
  const isRefunded = (await tx.get(SQL.refunded, id)) !== undefined
  if (isRefunded) return named === undefined ? 'done' : 'other'
  if (row.status === 'canceled' && named !== undefined) return 'other'
  if (named === undefined) {
    if ((await refundRun(tx, SQL, row, nowMs)) > 0)
      await tx.run(SQL.explain, id, JSON.stringify(withRefund(failure, 'refunded')))
    // A job that is found later may be that of another run.
    await tx.run(SQL.keepJob, id, row.job as string | null, null)
    return 'done'
  }
  const key = jobKeyOf(named)
  if ((await tx.get(SQL.jobsOfOthers, [`${key}`], id)) !== undefined) return 'taken'
  await tx.run(SQL.adopt, id, JSON.stringify(named), key)
  return 'done'
}

/**
 * A job with the input of the run, of which no other run knows that it has it, may still be the job of a run whose
 * create had no answer: of two runs with one input, neither gets it.
 */
async function adoptJob(
  tx: Transaction,
  SQL: RunStatements,
  { id, owner }: ClaimedRun,
  handle: JobHandle,
): Promise<boolean | 'taken'> {
  const row = await tx.get(SQL.lockOwnJob, id, owner)
  if (row === undefined) return false
  const intent = jobOf(row.job)?.intent
  const adopted: StoredJob = { handle }
  const key = jobKeyOf(adopted)
  // One statement: a run whose job is saved in between is found by its create, or by its job.
  const keys = [key, jobKeyOf({ ...(intent && { intent }) })].filter((each) => each !== null)
  const others = (await tx.all(SQL.jobsOfOthers, keys, id)).map((other) => jobOf(other.job))
  const mayHaveIt = (other: StoredJob | undefined) =>
    other?.handle !== undefined || (intent && other?.intent && isSameCreate(intent, other.intent))
  if (others.some(mayHaveIt)) return 'taken'
  await tx.run(SQL.keepJob, id, JSON.stringify(adopted), key)
  return true
}

/** Whether a job of one create could be listed as the job of the other: no field that both sent differs. */
const isSameCreate = (one: JobIntent, other: JobIntent): boolean =>
  one.endpoint === other.endpoint &&
  Object.entries(one.input ?? {}).every(([name, digest]) => (other.input?.[name] ?? digest) === digest)
