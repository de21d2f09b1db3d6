/** Rows of the database to the values of the contract. */
import type { Kind } from '../../../protocol/models.js'
import type { LocalStatus } from '../../../protocol/run-state.js'
import type { RunFailure, StoredRun } from '../../stored-run.js'
import type { FailedRuns, WorkerRecord } from '../contract.js'
import { numberOr, outputOfRow, withInput } from '../shared-rows.js'
import type { Row } from './driver.js'

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

export const runOfRow = (row: Row): StoredRun => withInput(summaryOfRow(row), row.input)

/** Of a row without its input. */
export const summaryOfRow = (row: Row): Omit<StoredRun, 'input'> => ({
  id: String(row.id),
  accountId: Number(row.account_id),
  model: String(row.model),
  kind: row.kind as Kind,
  status: row.status as LocalStatus,
  outputs: ((row.outputs as readonly Row[] | null | undefined) ?? []).map(outputOfRow),
  failure: row.failure === null ? undefined : (JSON.parse(String(row.failure)) as RunFailure),
  createdAtMs: Number(row.created_at),
  startedAtMs: numberOr(row.started_at),
  finishedAtMs: numberOr(row.finished_at),
})
