/** Rows of the database to the values of the contract. */
import type { Row } from '../../../host/database.js'
import type { Kind } from '../../../protocol/models.js'
import type { LocalStatus } from '../../../protocol/run-state.js'
import type { RateLimit } from '../../rate/contract.js'
import type { KeyRecord } from '../../rules/caller.js'
import type { StoredInput, StoredRun } from '../../stored-run.js'
import type { AccountRecord, KeyDetails } from '../account-store.js'
import type { WorkerRecord } from '../contract.js'
import { numberOr, outputOfRow } from '../shared-rows.js'
import { hasEnded, type ThisProcess } from './worker-process.js'

const allowedIpsOf = ({ allowed_ips }: Row): readonly string[] | undefined =>
  allowed_ips === null ? undefined : (JSON.parse(String(allowed_ips)) as string[])

const rateOf = ({ rate_requests, rate_window_ms }: Row): RateLimit | undefined =>
  rate_requests === null ? undefined : { requests: Number(rate_requests), windowMs: Number(rate_window_ms) }

export const keyOfRow = (row: Row): KeyRecord => ({
  id: Number(row.id),
  accountId: Number(row.account_id),
  hash: String(row.hash),
  disabled: row.disabled !== 0,
  expiresAtMs: numberOr(row.expires_at),
  banned: row.banned !== 0,
  allowedIps: allowedIpsOf(row),
  rate: rateOf(row),
})

export const keyDetailsOfRow = (row: Row): KeyDetails => ({
  id: Number(row.id),
  account: String(row.account),
  name: String(row.name),
  disabled: row.disabled !== 0,
  spendLimit: numberOr(row.spend_limit),
  spent: Number(row.spent),
  quota: numberOr(row.quota),
  used: Number(row.used),
  allowedIps: allowedIpsOf(row),
  expiresAtMs: numberOr(row.expires_at),
  rate: rateOf(row),
  createdAtMs: Number(row.created_at),
})

export const accountOfRow = (row: Row): AccountRecord => ({
  id: Number(row.id),
  name: String(row.name),
  balance: Number(row.balance),
  banned: row.banned !== 0,
  keys: Number(row.keys),
  runs: Number(row.runs),
  createdAtMs: Number(row.created_at),
})

export const workerOfRow = (row: Row, here: ThisProcess): WorkerRecord => ({
  id: String(row.id),
  heartbeatAtMs: Number(row.heartbeat_at),
  hasEnded: hasEnded({ host: String(row.host), pid: Number(row.pid), bornAtMs: Number(row.born_at) }, here),
})

export const runOfRow = (row: Row, outputs: readonly Row[] = []): StoredRun => ({
  id: String(row.id),
  accountId: Number(row.account_id),
  model: String(row.model),
  kind: row.kind as Kind,
  status: row.status as LocalStatus,
  input: JSON.parse(String(row.input)) as StoredInput,
  outputs: outputs.map(outputOfRow),
  failure:
    row.error_code === null
      ? undefined
      : { code: String(row.error_code), message: String(row.error_message) },
  createdAtMs: Number(row.created_at),
  startedAtMs: numberOr(row.started_at),
  finishedAtMs: numberOr(row.finished_at),
})
