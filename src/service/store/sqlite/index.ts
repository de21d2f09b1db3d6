/** The contract on SQLite: each function is one statement or one transaction; the statements are in `*-statements.ts`. */

import { existsSync, statSync } from 'node:fs'
import { usageError } from '../../../errors.js'
import {
  type DatabaseOptions,
  type OpenDatabase,
  openDatabase,
  ReplacedFile,
  type Row,
  type Value,
} from '../../../host/database.js'
import { BUSY_TIMEOUT_MS, isEmpty, withDatabase } from '../../../host/database-file.js'
import { quarantineForeignLog } from '../../../host/database-log.js'
import { KINDS, type Kind } from '../../../protocol/models.js'
import type { AddedRun, ClaimedRun, CrashLimit, FailedRuns, NewRun, Store } from '../contract.js'
import type { FileName } from '../file-records.js'
import { aspectRatioOf, promptOf } from '../run-columns.js'
import { outputOfRow } from '../shared-rows.js'
import { createAccountStore } from './account-queries.js'
import { createConsoleStore } from './console-queries.js'
import { createCreditLedger } from './credit-ledger.js'
import { explainDatabaseError } from './database-errors.js'
import { createFileRecords } from './file-records.js'
import { refuseMoved } from './moved-mark.js'
import { runOfRow, workerOfRow } from './rows.js'
import { SQL } from './run-statements.js'
import { SERVICE_MIGRATIONS } from './service-migrations.js'
import { createUserStore } from './user-queries.js'
import { createWorkerLocks, processColumns } from './worker-locks.js'

/** Throws `RushesError` (usage) when the file is of a later version of `rushes`. */
export function openSqliteStore(path: string): Store {
  return storeOf(openServiceDatabase(path))
}

interface ServiceDatabaseOptions extends Pick<DatabaseOptions, 'busyTimeoutMs'> {
  /** Whether to open data that was moved to another database, which can only be read. */
  readonly evenMoved?: boolean
}

/** Throws as `openSqliteStore` does, also for data that was moved to another database. */
export function openServiceDatabase(
  path: string,
  { evenMoved = false, ...options }: ServiceDatabaseOptions = {},
): OpenDatabase {
  refuseLost(path)
  try {
    if (existsSync(path)) {
      refuseForeign(path, options.busyTimeoutMs)
      if (!evenMoved) refuseMoved(path, options.busyTimeoutMs)
    }
    return openDatabase({ ...options, path, migrations: SERVICE_MIGRATIONS })
  } catch (error) {
    throw explainDatabaseError(path, error) ?? error
  }
}

/** Nothing is created or changed in a database of another program. */
function refuseForeign(path: string, busyTimeoutMs = BUSY_TIMEOUT_MS): void {
  quarantineForeignLog(path)
  const [found] = withDatabase(path, busyTimeoutMs, (database) =>
    database
      .prepare(
        `SELECT count(*) AS tables, coalesce(sum(name IN ('accounts', 'keys', 'runs')), 0) AS ours
         FROM sqlite_schema WHERE type = 'table'`,
      )
      .all(),
  ) as readonly Row[]
  if (Number(found?.tables) > 0 && Number(found?.ours) < 3)
    throw usageError(
      `${path} is the database of another program, not of a service.`,
      'Use the data folder of a service (--data), or restore a backup (docs/backup.md).',
    )
}

/** A service that lost its database must not start with a new one, and a new first key. */
function refuseLost(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false })
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false })
  const isLost = found === undefined ? log !== undefined && log.size > 0 : isEmpty(found)
  if (isLost)
    throw usageError(
      `${path} is ${found === undefined ? 'missing, and its log is there' : 'empty'}: the accounts and runs of this service are gone.`,
      'Restore a backup (docs/backup.md). To start with new data, remove its files (service.db*), or use another data folder (--data).',
    )
}

const NO_FAILED_RUNS: FailedRuns = { runs: 0, refunded: 0 }

export function storeOf(database: OpenDatabase): Store {
  const { run, get, all, transaction } = database
  const changed = (sql: string, ...values: readonly Value[]) => run(sql, ...values).changes > 0
  const ledger = createCreditLedger(database)
  const locks = createWorkerLocks(database.path)

  /** What is missing from a file that was removed or replaced may exist. */
  function orReplaced<Found>(found: Found | undefined): Found | undefined {
    if (found === undefined && !database.isCurrent()) throw new ReplacedFile()
    return found
  }

  /** Runs a statement that moves runs, and refunds those that failed. Call it within a transaction. */
  function moveRuns(
    { nowMs, refunds = true }: { readonly nowMs: number; readonly refunds?: boolean | undefined },
    sql: string,
    ...values: readonly Value[]
  ): FailedRuns | undefined {
    const rows = all(sql, ...values)
    if (rows.length === 0) return undefined
    const failed = rows.filter(({ status }) => status === 'failed')
    const credits = refunds ? failed.map((row) => ledger.refund(row, nowMs)) : []
    return { runs: failed.length, refunded: credits.reduce((sum, each) => sum + each, 0) }
  }

  function applyCrash(
    { crashes, failure: { code, message }, refunds }: CrashLimit,
    owner: string,
    id: string | null,
    nowMs: number,
  ) {
    run(SQL.recordCrashedAttempts, owner, id, crashes, nowMs)
    return moveRuns({ nowMs, refunds }, SQL.recordCrash, owner, id, crashes, code, message, nowMs)
  }

  const isRemoved = ({ kind, key }: FileName): boolean =>
    kind === 'input' && get(SQL.liveImage, key) === undefined

  /** What a create with this idempotency key has got before. */
  function createdBefore({ accountId, idempotency, createdAtMs }: NewRun): AddedRun | undefined {
    const row = idempotency && get(SQL.createdBefore, accountId, idempotency.key, createdAtMs)
    if (row === undefined) return undefined
    return row.request === idempotency?.request ? { id: String(row.run_id) } : { refused: 'key_reused' }
  }

  function rememberKey({ id, accountId, idempotency, createdAtMs }: NewRun): void {
    if (idempotency === undefined) return
    const { key, request, expiresAtMs } = idempotency
    run(SQL.removeExpiredKeys, createdAtMs)
    run(SQL.addIdempotencyKey, accountId, key, request, id, expiresAtMs)
  }

  const accountStore = createAccountStore(database)
  const userStore = createUserStore(database)
  return {
    ...accountStore,
    ...userStore,
    ...createConsoleStore(database),
    ...createFileRecords(database),
    findKey: async (...args) => orReplaced(await accountStore.findKey(...args)),
    findUser: async (...args) => orReplaced(await userStore.findUser(...args)),
    findSession: async (...args) => orReplaced(await userStore.findSession(...args)),

    addRun: async (added, check) =>
      transaction(() => {
        const { id, accountId, keyId, model, kind, input, price, createdAtMs, files = [] } = added
        const before = createdBefore(added)
        if (before !== undefined) return before
        if (keyId !== undefined || price > 0) check(ledger.accountState({ accountId, keyId }))
        if (files.some(isRemoved)) return { refused: 'file_removed' }
        const columns = [model, kind, promptOf(input), aspectRatioOf(input), price, createdAtMs]
        run(SQL.addRun, id, accountId, keyId ?? null, ...columns)
        run(SQL.addInput, id, JSON.stringify(input))
        if (files.length > 0) {
          run(SQL.recordImages, JSON.stringify(files.filter(({ kind }) => kind === 'input')))
          run(SQL.addRunFiles, id, JSON.stringify(files))
        }
        rememberKey(added)
        ledger.charge({ id, accountId, keyId, price }, createdAtMs)
        return { id }
      }),
    async findRun(id, accountId) {
      const row = orReplaced(get(SQL.findRun, id, accountId))
      if (row === undefined) return undefined
      return runOfRow(row, row.status === 'succeeded' ? all(SQL.outputsOfRun, id) : [])
    },
    claimRun: async (worker, preferred, nowMs, claims = 'all', skippedAccounts = []) =>
      transaction(() => {
        const lists = [JSON.stringify(preferred), claims, JSON.stringify(skippedAccounts)]
        const row = get(SQL.claimRun, worker, nowMs, ...lists)
        if (row === undefined) return undefined
        run(SQL.markServed, Number(row.account_id))
        return runOfRow({ ...row, ...get(SQL.inputOfRun, String(row.id)) })
      }),
    finishRun: async ({ id, owner, nowMs }: ClaimedRun, outputs) =>
      transaction(() => {
        if (!changed(SQL.finishRun, id, owner, nowMs)) return false
        for (const [position, { token, name, contentType, bytes, sha256 }] of outputs.entries())
          run(SQL.addOutput, id, position, token, name, contentType, bytes, sha256)
        return true
      }),
    failRun: async ({ id, owner, nowMs }, { code, message }, { refunds } = { refunds: true }) =>
      transaction(() => moveRuns({ nowMs, refunds }, SQL.failRun, id, owner, nowMs, code, message)),
    recordCrash: async ({ id, owner, nowMs }, limit) =>
      transaction(() => applyCrash(limit, owner, id, nowMs)),
    async findOutput(token, name) {
      const row = orReplaced(get(SQL.findOutput, token, name))
      return row && outputOfRow(row)
    },
    async queueLengths() {
      const row = get(SQL.queueLengths)
      return Object.fromEntries(KINDS.map((kind) => [kind, Number(row?.[kind])])) as Record<Kind, number>
    },

    renewLease: async (id) =>
      transaction(() => {
        const others = all(SQL.listWorkers).map((row) => String(row.id))
        locks.hold(id, others)
        run(SQL.renewLease, id, ...processColumns())
      }),
    extendLease: async (id) => changed(SQL.extendLease, id),
    listWorkers: async () => all(SQL.listWorkers).map((row) => workerOfRow(row, locks)),
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
