/** Rows of the database to the values of the contract. */
import type { Kind } from '../../../protocol/models.js'
import type { LocalStatus } from '../../../protocol/run-state.js'
import type { KeyRecord } from '../../rules/caller.js'
import type { RunFailure, StoredInput, StoredRun } from '../../stored-run.js'
import type { AccountRecord, KeyDetails } from '../account-store.js'
import type { FailedRuns, WorkerRecord } from '../contract.js'
import { numberOr, outputOfRow } from '../shared-rows.js'
import type { Row } from './driver.js'

const termsOf = (row: Row) => ({
  disabled: row.disabled === true,
  expiresAtMs: numberOr(row.expires_at),
  allowedIps: (row.allowed_ips as readonly string[] | null) ?? undefined,
  rate:
    row.rate_requests === null
      ? undefined
      : { requests: Number(row.rate_requests), windowMs: Number(row.rate_window_ms) },
})

export const keyOfRow = (row: Row): KeyRecord => ({
  ...termsOf(row),
  id: Number(row.id),
  accountId: Number(row.account_id),
  hash: String(row.hash),
  banned: row.banned === true,
})

export const keyDetailsOfRow = (row: Row): KeyDetails => ({
  ...termsOf(row),
  id: Number(row.id),
  account: String(row.account),
  name: String(row.name),
  spendLimit: numberOr(row.spend_limit),
  spent: Number(row.spent),
  quota: numberOr(row.quota),
  used: Number(row.used),
  createdAtMs: Number(row.created_at),
})

export const accountOfRow = (row: Row): AccountRecord => ({
  id: Number(row.id),
  name: String(row.name),
  balance: Number(row.balance),
  banned: row.banned === true,
  keys: Number(row.keys),
  runs: Number(row.runs),
  createdAtMs: Number(row.created_at),
})

/** A connection that ended may be that of a living process: `isDisconnected` alone ends no lease. */
export const workerOfRow = (row: Row): WorkerRecord => ({
  id: String(row.id),
  heartbeatAtMs: Number(row.heartbeat_at),
  hasEnded: false,
  isDisconnected: row.isDisconnected === true,
})

/** Undefined when no run was moved. */
export const failedRunsOf = (row: Row | undefined): FailedRuns | undefined =>
  row === undefined || row.moved === 0
    ? undefined
    : { runs: Number(row.runs), refunded: Number(row.refunded) }

export const runOfRow = (row: Row): StoredRun => ({
  id: String(row.id),
  accountId: Number(row.account_id),
  model: String(row.model),
  kind: row.kind as Kind,
  status: row.status as LocalStatus,
  input: JSON.parse(String(row.input)) as StoredInput,
  outputs: ((row.outputs as readonly Row[] | null | undefined) ?? []).map(outputOfRow),
  failure: row.failure === null ? undefined : (JSON.parse(String(row.failure)) as RunFailure),
  createdAtMs: Number(row.created_at),
  startedAtMs: numberOr(row.started_at),
  finishedAtMs: numberOr(row.finished_at),
})
