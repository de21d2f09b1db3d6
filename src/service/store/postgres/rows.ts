/** Rows of the database to the values of the contract. */
import type { Kind } from '../../../protocol/models.js'
import type { LocalStatus } from '../../../protocol/run-state.js'
import type { AccountState } from '../../rules/budget.js'
import type { KeyRecord } from '../../rules/caller.js'
import type { RunFailure, StoredInput, StoredOutput, StoredRun } from '../../stored-run.js'
import type {
  AccountRecord,
  KeyDetails,
  LedgerEntry,
  LedgerEntryKind,
  Verification,
} from '../account-store.js'
import type { FailedRuns, WorkerRecord } from '../contract.js'
import type { Row } from './driver.js'

const numberOr = (value: unknown): number | undefined => (value === null ? undefined : Number(value))

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

export const accountStateOfRow = (row: Row): AccountState => ({
  spent: Number(row.spent),
  spendLimit: numberOr(row.spend_limit),
  used: Number(row.used),
  quota: numberOr(row.quota),
  balance: Number(row.balance),
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

export const ledgerEntryOfRow = (row: Row): LedgerEntry => ({
  sequence: Number(row.sequence),
  account: String(row.account),
  kind: row.kind as LedgerEntryKind,
  amount: Number(row.amount),
  runId: row.run_id === null ? undefined : String(row.run_id),
  keyId: numberOr(row.key_id),
  createdAtMs: Number(row.created_at),
})

/** From the rows of each of the ledger's statements. */
export function verificationOf([totals = [], ...checks]: readonly (readonly Row[])[]): Verification {
  const [row] = totals
  return {
    accounts: Number(row?.accounts ?? 0),
    entries: Number(row?.entries ?? 0),
    runs: Number(row?.runs ?? 0),
    credits: Number(row?.credits ?? 0),
    problems: checks.flatMap((rows) => rows.map(({ problem }) => String(problem))),
  }
}

export const outputOfRow = (row: Row): StoredOutput => ({
  token: String(row.token),
  name: String(row.name),
  contentType: String(row.content_type),
  bytes: Number(row.bytes),
  sha256: String(row.sha256),
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
