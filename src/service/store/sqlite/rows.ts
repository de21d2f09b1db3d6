/** Rows of the database to the values of the contract. */
import type { Row } from '../../../host/database.js'
import type { Kind } from '../../../protocol/models.js'
import type { LocalStatus } from '../../../protocol/run-state.js'
import type { StoredInput, StoredRun } from '../../stored-run.js'
import type { WorkerRecord } from '../contract.js'
import { numberOr, outputOfRow } from '../shared-rows.js'
import { hasEnded, type ThisProcess } from './worker-process.js'

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
