/** Runs, the queue and the end of workers, on SQLite. Each function is one statement or one transaction. */
import type { OpenDatabase, SqlValue } from '../../../host/database.js'
import { KINDS, type Kind } from '../../../protocol/models.js'
import type { AccountStore } from '../account-store.js'
import type { ConsoleStore, UserStore } from '../console-store.js'
import type {
  AddedRun,
  ClaimedRun,
  CrashLimit,
  FailedRuns,
  FileName,
  FileRecords,
  NewRun,
  Store,
} from '../contract.js'
import { newRunColumns, outputOfRow, runOfRow, STORED_RUN_COLUMNS } from '../rows.js'
import { RUNS, sqliteTexts } from '../statements.js'
import { createCreditLedger } from './accounts.js'
import { CLAIM_RUN } from './claim-run.js'
import { createLeaseStore } from './leases.js'
import { createWorkerLocks } from './worker-locks.js'

/**
 * The status of a run changes only as `LOCAL_MOVES` (protocol/run-state.ts) allows: each statement that changes it also
 * checks the previous status.
 */
const SQL = {
  ...sqliteTexts(RUNS),

  // Executed for every status request. Reads no other columns, because libsql spends most of a read on columns.
  findRun: `
    SELECT ${STORED_RUN_COLUMNS}, failure, input FROM runs WHERE id = ?1 AND account_id = ?2`,

  liveImage: `SELECT 1 FROM files WHERE kind = 'input' AND key = ?1 AND state IN ('writing', 'stored')`,

  recordImages: `
    UPDATE files SET state = 'stored'
    WHERE kind = 'input' AND key IN (SELECT value ->> 'key' FROM json_each(?1)) AND state = 'writing'`,

  addRunFiles: `
    INSERT OR IGNORE INTO run_files (run_id, kind, key)
    SELECT ?1, files.kind, files.key
    FROM json_each(?2) AS wanted
    JOIN files ON files.kind = wanted.value ->> 'kind' AND files.key = wanted.value ->> 'key' AND state = 'stored'`,

  createdBefore: `
    SELECT run_id, request FROM idempotency_keys WHERE account_id = ?1 AND key = ?2 AND expires_at > ?3`,

  removeExpiredKeys: `DELETE FROM idempotency_keys WHERE expires_at <= ?1`,

  addIdempotencyKey: `
    INSERT INTO idempotency_keys (account_id, key, request, run_id, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)`,

  outputsOfRun: `SELECT * FROM outputs WHERE run_id = ?1 ORDER BY position`,

  claimRun: CLAIM_RUN,

  markServed: `UPDATE accounts SET served = (SELECT max(served) + 1 FROM accounts) WHERE id = ?1`,

  finishRun: `
    UPDATE runs SET status = 'succeeded', finished_at = ?3
    WHERE id = ?1 AND owner = ?2 AND status = 'processing'`,

  addOutput: `
    INSERT INTO outputs (run_id, position, token, name, content_type, bytes, sha256)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)`,

  failRun: `
    UPDATE runs SET status = 'failed', finished_at = ?3, failure = ?4
    WHERE id = ?1 AND owner = ?2 AND status = 'processing'
    RETURNING *`,

  // Moves one run of the owner. If ?2 is null, moves all runs that it was rendering.
  recordCrash: `
    UPDATE runs SET
      attempts = attempts + 1,
      status = iif(attempts + 1 >= ?3, 'failed', 'queued'),
      owner = iif(attempts + 1 >= ?3, owner, ''),
      failure = iif(attempts + 1 >= ?3, ?4, NULL),
      started_at = iif(attempts + 1 >= ?3, started_at, NULL),
      finished_at = iif(attempts + 1 >= ?3, ?5, NULL)
    WHERE owner = ?1 AND status = 'processing' AND (?2 IS NULL OR id = ?2)
    RETURNING *`,

  // Executed before `recordCrash`, for the runs that `recordCrash` returns to the queue. The last attempt of a failed
  // run is in the run itself.
  recordCrashedAttempts: `
    INSERT INTO lost_attempts (run_id, started_at, ended_at, result)
    SELECT id, started_at, ?4, 'crashed' FROM runs
    WHERE owner = ?1 AND status = 'processing' AND (?2 IS NULL OR id = ?2) AND attempts + 1 < ?3`,

  recordReturnedAttempts: `
    INSERT INTO lost_attempts (run_id, started_at, ended_at, result)
    SELECT id, started_at, ?2, 'returned' FROM runs WHERE owner = ?1 AND status = 'processing'`,

  requeueRuns: `
    UPDATE runs SET status = 'queued', owner = '', started_at = NULL WHERE owner = ?1 AND status = 'processing'`,

  writeNothing: `UPDATE accounts SET served = served WHERE id = (SELECT min(id) FROM accounts)`,
} as const

const addRunSql = (columns: readonly string[]): string => `
    INSERT INTO runs (${columns.join(', ')}, status)
    VALUES (${columns.map((_, index) => `?${index + 1}`).join(', ')}, 'queued')`

const NO_FAILED_RUNS: FailedRuns = { runs: 0, refunded: 0 }

type RunStore = Omit<
  Store,
  keyof AccountStore | keyof UserStore | keyof ConsoleStore | keyof FileRecords | 'addOutputFiles'
>

export function createRunStore(database: OpenDatabase): RunStore {
  const { run, get, all, transaction } = database
  const changed = (sql: string, ...values: readonly SqlValue[]) => run(sql, ...values).changes > 0
  const ledger = createCreditLedger(database)
  const locks = createWorkerLocks(database.path)

  /**
   * Runs a statement that moves runs, and refunds the failed ones. Returns undefined if no run was moved. Call it
   * within a transaction.
   */
  function moveRuns(
    { nowMs, refunds = true }: { readonly nowMs: number; readonly refunds?: boolean | undefined },
    sql: string,
    ...values: readonly SqlValue[]
  ): FailedRuns | undefined {
    const rows = all(sql, ...values)
    if (rows.length === 0) return undefined
    const failed = rows.filter(({ status }) => status === 'failed')
    const credits = refunds ? failed.map((row) => ledger.refund(row, nowMs)) : []
    return { runs: failed.length, refunded: credits.reduce((sum, each) => sum + each, 0) }
  }

  function applyCrash(
    { crashes, failure, refunds }: CrashLimit,
    owner: string,
    id: string | null,
    nowMs: number,
  ) {
    run(SQL.recordCrashedAttempts, owner, id, crashes, nowMs)
    return moveRuns({ nowMs, refunds }, SQL.recordCrash, owner, id, crashes, JSON.stringify(failure), nowMs)
  }

  const isRemoved = ({ kind, key }: FileName): boolean =>
    kind === 'input' && get(SQL.liveImage, key) === undefined

  /** Returns the result of an earlier create with the same idempotency key. */
  function createdBefore({ accountId, idempotency, createdAtMs }: NewRun): AddedRun | undefined {
    const row = idempotency && get(SQL.createdBefore, accountId, idempotency.key, createdAtMs)
    if (row === undefined) return undefined
    return row.request === idempotency?.request ? { id: String(row.run_id) } : { refused: 'key_reused' }
  }

  function recordIdempotencyKey({ id, accountId, idempotency, createdAtMs }: NewRun): void {
    if (idempotency === undefined) return
    const { key, request, expiresAtMs } = idempotency
    run(SQL.removeExpiredKeys, createdAtMs)
    run(SQL.addIdempotencyKey, accountId, key, request, id, expiresAtMs)
  }

  return {
    addRun: async (added, check) =>
      transaction(() => {
        const { id, accountId, keyId, input, price, createdAtMs, files = [] } = added
        const before = createdBefore(added)
        if (before !== undefined) return before
        if (keyId !== undefined || price > 0) check(ledger.accountState({ accountId, keyId }))
        if (files.some(isRemoved)) return { refused: 'file_removed' }
        const columns = { ...newRunColumns(added), input: JSON.stringify(input) }
        run(addRunSql(Object.keys(columns)), ...Object.values(columns))
        if (files.length > 0) {
          run(SQL.recordImages, JSON.stringify(files.filter(({ kind }) => kind === 'input')))
          run(SQL.addRunFiles, id, JSON.stringify(files))
        }
        recordIdempotencyKey(added)
        ledger.charge({ id, accountId, keyId, price }, createdAtMs)
        return { id }
      }),
    async findRun(id, accountId) {
      const row = get(SQL.findRun, id, accountId)
      if (row === undefined) return undefined
      return runOfRow(row, row.status === 'succeeded' ? all(SQL.outputsOfRun, id) : [])
    },
    claimRun: async ({ worker, nowMs, models, preferred = [], claims = 'all', skippedAccounts = [] }) =>
      transaction(() => {
        const lists = [
          JSON.stringify(preferred),
          claims,
          JSON.stringify(skippedAccounts),
          JSON.stringify(models),
        ]
        const row = get(SQL.claimRun, worker, nowMs, ...lists)
        if (row === undefined) return undefined
        run(SQL.markServed, Number(row.account_id))
        return runOfRow(row)
      }),
    finishRun: async ({ id, owner, nowMs }: ClaimedRun, outputs) =>
      transaction(() => {
        if (!changed(SQL.finishRun, id, owner, nowMs)) return false
        for (const [position, { token, name, contentType, bytes, sha256 }] of outputs.entries())
          run(SQL.addOutput, id, position, token, name, contentType, bytes, sha256)
        return true
      }),
    failRun: async ({ id, owner, nowMs }, failure, { refunds } = { refunds: true }) =>
      transaction(() => moveRuns({ nowMs, refunds }, SQL.failRun, id, owner, nowMs, JSON.stringify(failure))),
    recordCrash: async ({ id, owner, nowMs }, limit) =>
      transaction(() => applyCrash(limit, owner, id, nowMs)),
    async findOutput(token, name) {
      const row = get(SQL.findOutput, token, name)
      return row && outputOfRow(row)
    },
    async queueLengths() {
      const row = get(SQL.queueLengths)
      return Object.fromEntries(KINDS.map((kind) => [kind, Number(row?.[kind])])) as Record<Kind, number>
    },

    ...createLeaseStore(database, locks),
    reapWorker: async ({ id, heartbeatAtMs }, limit, nowMs) =>
      transaction(() => {
        if (!changed(SQL.removeExpiredWorker, id, heartbeatAtMs)) return undefined
        locks.remove(id)
        return applyCrash(limit, id, null, nowMs) ?? NO_FAILED_RUNS
      }),
    releaseWorker: async (id, nowMs) =>
      transaction(() => {
        run(SQL.recordReturnedAttempts, id, nowMs)
        run(SQL.requeueRuns, id)
        run(SQL.removeWorker, id)
        locks.remove(id)
      }),

    checkWritable: async () => void run(SQL.writeNothing),

    async close() {
      database.close()
      locks.end()
    },
  }
}
