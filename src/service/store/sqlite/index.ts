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
import type { ClaimedRun, CrashLimit, FailedRuns, Store } from '../contract.js'
import { outputOfRow } from '../shared-rows.js'
import { createAccountStore } from './account-queries.js'
import { createConsoleStore } from './console-queries.js'
import { createCreditLedger } from './credit-ledger.js'
import { explainDatabaseError } from './database-errors.js'
import { runOfRow, workerOfRow } from './rows.js'
import { SQL } from './run-statements.js'
import { SERVICE_MIGRATIONS } from './service-migrations.js'
import { createUserStore } from './user-queries.js'
import { type ThisProcess, thisProcess } from './worker-process.js'

/** Throws `RushesError` (usage) when the file is of a later version of `rushes`. */
export function openSqliteStore(path: string, here?: ThisProcess): Store {
  return storeOf(openServiceDatabase(path), here)
}

/** Throws as `openSqliteStore` does. */
export function openServiceDatabase(
  path: string,
  options: Pick<DatabaseOptions, 'busyTimeoutMs'> = {},
): OpenDatabase {
  refuseLost(path)
  try {
    if (existsSync(path)) refuseForeign(path, options.busyTimeoutMs)
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

export function storeOf(database: OpenDatabase, here = thisProcess()): Store {
  const { run, get, all, transaction } = database
  const changed = (sql: string, ...values: readonly Value[]) => run(sql, ...values).changes > 0
  const ledger = createCreditLedger(database)

  /** What is missing from a file that was removed or replaced may exist. */
  function orReplaced<Found>(found: Found | undefined): Found | undefined {
    if (found === undefined && !database.isCurrent()) throw new ReplacedFile()
    return found
  }

  /** Runs a statement that moves runs, and refunds those that failed. Call it within a transaction. */
  function moveRuns(nowMs: number, sql: string, ...values: readonly Value[]): FailedRuns | undefined {
    const rows = all(sql, ...values)
    if (rows.length === 0) return undefined
    const failed = rows.filter(({ status }) => status === 'failed')
    const refunds = failed.map((row) => ledger.refund(row, nowMs))
    return { runs: failed.length, refunded: refunds.reduce((sum, credits) => sum + credits, 0) }
  }

  function applyCrash({ crashes, failure }: CrashLimit, owner: string, id: string | null, nowMs: number) {
    run(SQL.recordCrashedAttempts, owner, id, crashes, nowMs)
    return moveRuns(nowMs, SQL.recordCrash, owner, id, crashes, failure.code, failure.message, nowMs)
  }

  const accountStore = createAccountStore(database)
  const userStore = createUserStore(database)
  return {
    ...accountStore,
    ...userStore,
    ...createConsoleStore(database),
    findKey: async (...args) => orReplaced(await accountStore.findKey(...args)),
    findUser: async (...args) => orReplaced(await userStore.findUser(...args)),
    findSession: async (...args) => orReplaced(await userStore.findSession(...args)),

    addRun: async ({ id, accountId, keyId, model, kind, input, price, createdAtMs }, check) =>
      transaction(() => {
        if (keyId !== undefined || price > 0) check(ledger.accountState({ accountId, keyId }))
        const text = JSON.stringify(input)
        run(SQL.addRun, id, accountId, keyId ?? null, model, kind, text, price, createdAtMs)
        ledger.charge({ id, accountId, keyId, price }, createdAtMs)
      }),
    async findRun(id, accountId) {
      const row = orReplaced(get(SQL.findRun, id, accountId))
      if (row === undefined) return undefined
      return runOfRow(row, row.status === 'succeeded' ? all(SQL.outputsOfRun, id) : [])
    },
    claimRun: async (worker, preferred, nowMs, claims = 'all') =>
      transaction(() => {
        const row = get(SQL.claimRun, worker, nowMs, JSON.stringify(preferred), claims)
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
    failRun: async ({ id, owner, nowMs }, { code, message }) =>
      transaction(() => moveRuns(nowMs, SQL.failRun, id, owner, nowMs, code, message)),
    recordCrash: async ({ id, owner, nowMs }, limit) =>
      transaction(() => applyCrash(limit, owner, id, nowMs)),
    async findOutput(token, name) {
      const row = orReplaced(get(SQL.findOutput, token, name))
      return row && outputOfRow(row)
    },
    imagesInUse: async () => all(SQL.imagesInUse).map(({ sha256 }) => String(sha256)),
    async queueLengths() {
      const row = get(SQL.queueLengths)
      return Object.fromEntries(KINDS.map((kind) => [kind, Number(row?.[kind])])) as Record<Kind, number>
    },

    async renewLease(id) {
      run(SQL.renewLease, id, here.host, here.pid, here.bornAtMs)
    },
    extendLease: async (id) => changed(SQL.extendLease, id),
    listWorkers: async () => all(SQL.listWorkers).map((row) => workerOfRow(row, here)),
    reapWorker: async ({ id, heartbeatAtMs }, limit, nowMs) =>
      transaction(() => {
        if (!changed(SQL.removeExpiredWorker, id, heartbeatAtMs)) return undefined
        return applyCrash(limit, id, null, nowMs) ?? NO_FAILED_RUNS
      }),
    releaseWorker: async (id, nowMs) =>
      transaction(() => {
        run(SQL.recordReturnedAttempts, id, nowMs)
        run(SQL.requeueRuns, id)
        run(SQL.removeWorker, id)
      }),

    checkWritable: async () => void run(SQL.writeNothing),

    close: async () => database.close(),
  }
}
