/** Rows of the database to the values of the contract. */
import type { Row } from '../../../host/database.js'
import type { Kind } from '../../../protocol/models.js'
import type { LocalStatus } from '../../../protocol/run-state.js'
import type { StoredRun } from '../../stored-run.js'
import type { WorkerRecord } from '../contract.js'
import { numberOr, outputOfRow, withInput } from '../shared-rows.js'
import type { WorkerLocks } from './worker-locks.js'

export const workerOfRow = (row: Row, { hasEnded }: Pick<WorkerLocks, 'hasEnded'>): WorkerRecord => ({
  id: String(row.id),
  heartbeatAtMs: Number(row.heartbeat_at),
  hasEnded: hasEnded(String(row.id)),
})

export const runOfRow = (row: Row, outputs?: readonly Row[]): StoredRun =>
  withInput(summaryOfRow(row, outputs), row.input)

/** Of a row without its input. */
export const summaryOfRow = (row: Row, outputs: readonly Row[] = []): Omit<StoredRun, 'input'> => ({
  id: String(row.id),
  accountId: Number(row.account_id),
  model: String(row.model),
  kind: row.kind as Kind,
  status: row.status as LocalStatus,
  outputs: outputs.map(outputOfRow),
  failure:
    row.error_code === null
      ? undefined
      : { code: String(row.error_code), message: String(row.error_message) },
  createdAtMs: Number(row.created_at),
  startedAtMs: numberOr(row.started_at),
  finishedAtMs: numberOr(row.finished_at),
})
