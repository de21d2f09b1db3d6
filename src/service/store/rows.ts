/** Converts database rows to records, and records to columns. */
import { createHash } from 'node:crypto'
import { readJson } from '../../protocol/json.js'
import type { ModelInput } from '../../protocol/models.js'
import type { StoredJob } from '../engines/engine.js'
import type { KeyTerms } from '../rules/key-terms.js'
import type { HeldRun, NewRun, RunFailure, StoredOutput, StoredRun } from './run.js'
import type { Row, Values } from './sql.js'

/** SQLite has no booleans, and stores 0 or 1. */
const BOOLEANS = ['banned', 'disabled', 'from_link', 'stopping']

const names = new Map<string, string>()

/** The key of a column in a record: `created_at` is `createdAtMs`. */
function keyOfColumn(column: string): string {
  const key =
    names.get(column) ??
    column.replace(/_at$/, '_at_ms').replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
  names.set(column, key)
  return key
}

/** The record of a row: its columns by name, with undefined for null. */
export const recordOf = <Fields>(row: Row): Fields =>
  Object.fromEntries(
    Object.entries(row).map(([column, value]) => [
      keyOfColumn(column),
      value === null ? undefined : BOOLEANS.includes(column) ? Boolean(value) : value,
    ]),
  ) as Fields

/** The record of a key, whose list of addresses is JSON, and whose rate has two columns. */
export function keyOf<Key>(row: Row): Key {
  const { allowedIps, rateRequests, rateWindowMs, ...key } = recordOf<Record<string, unknown>>(row)
  return {
    ...key,
    allowedIps: allowedIps === undefined ? undefined : JSON.parse(String(allowedIps)),
    rate:
      rateRequests === undefined
        ? undefined
        : { requests: Number(rateRequests), windowMs: Number(rateWindowMs) },
  } as Key
}

/** The columns of a key's terms. */
export const termColumns = ({ disabled = false, allowedIps, rate, ...terms }: Partial<KeyTerms>): Values => ({
  ...(terms.name !== undefined && { name: terms.name }),
  disabled,
  expires_at: terms.expiresAtMs,
  spend_limit: terms.spendLimit,
  quota: terms.quota,
  allowed_ips: allowedIps && JSON.stringify(allowedIps),
  rate_requests: rate?.requests,
  rate_window_ms: rate?.windowMs,
})

const CORRUPT_INPUT: RunFailure = {
  code: 'render_failed',
  message: 'The stored input of this run is damaged.',
}

/** Maximum number of prompt characters in the column `prompt`. A search covers only these. */
const MAX_PROMPT_CHARACTERS = 1_000

/** Returns the first characters of the prompt. Null if the prompt is not a string. */
const promptOf = ({ prompt }: ModelInput): string | null =>
  typeof prompt === 'string'
    ? [...prompt.slice(0, 4 * MAX_PROMPT_CHARACTERS)].slice(0, MAX_PROMPT_CHARACTERS).join('')
    : null

/** Longer than any real aspect ratio. Needed because a model may accept any text. */
const MAX_RATIO_CHARACTERS = 100

const aspectRatioOf = ({ aspect_ratio }: ModelInput): string | null =>
  typeof aspect_ratio === 'string' ? aspect_ratio.slice(0, MAX_RATIO_CHARACTERS) : null

/** The columns of a new run, without its input. */
export const newRunColumns = (run: NewRun) => ({
  id: run.id,
  account_id: run.accountId,
  key_id: run.keyId,
  model: run.model,
  kind: run.kind,
  prompt: promptOf(run.input),
  aspect_ratio: aspectRatioOf(run.input),
  price: run.price,
  created_at: run.createdAtMs,
  document: run.carried?.hash,
  idempotency_key: run.idempotency?.key,
  request: run.idempotency?.request,
})

/**
 * Columns of a `StoredRun`, except input, outputs and failure. Contains no other columns, because every status request
 * reads these, and libsql spends most of a read on columns.
 */
export const STORED_RUN_COLUMNS = `runs.id, runs.account_id, runs.model, runs.kind, runs.status, runs.created_at,
      runs.started_at, runs.finished_at, runs.stopping`

/** Columns of a `StoredRun`, except outputs. */
export const RUN_COLUMNS = `${STORED_RUN_COLUMNS}, failure, input`

/** The model that a run carries. */
export const DOCUMENT =
  '(SELECT documents.document FROM documents WHERE documents.hash = runs.document) AS document'

export const OUTPUT_COLUMNS = 'run_id, token, name, content_type, bytes, sha256'

/** Converts a row with its outputs, except its input. */
export function summaryOf<Summary extends Omit<StoredRun, 'input'>>(
  { stopping, ...row }: Row,
  outputs: readonly Row[],
): Summary {
  return {
    ...recordOf<Summary>(row),
    // A cancel that is not decided can still come too late.
    ...(stopping ? { status: 'processing', finishedAtMs: undefined } : undefined),
    failure: failureOf(row.failure),
    outputs: outputs.map(({ run_id: _, ...output }) => recordOf<StoredOutput>(output)),
  }
}

/** Also parses the input. A corrupt one fails only its run, and not each claim that finds it. */
export function runOf(row: Row, outputs: readonly Row[]): StoredRun {
  const run = summaryOf<StoredRun>(row, outputs)
  try {
    return { ...run, input: readJson(String(row.input)) as ModelInput }
  } catch {
    return { ...run, input: {}, failure: run.failure ?? CORRUPT_INPUT }
  }
}

export const heldRunOf = (row: Row): HeldRun => ({ ...(runOf(row, []) as HeldRun), job: jobOf(row.job) })

/** Whether a create of the run may have been accepted. */
export const hasJob = (value: unknown): boolean => typeof value === 'string' && value !== '{}'

/** Reads the job of a run. A damaged one may have been sent. */
export const jobOf = (value: unknown): StoredJob | undefined =>
  value === null ? undefined : parsedOr<StoredJob>(value, { intent: { id: '', sentAtMs: 0, endpoint: '' } })

/** Reads the failure of a run. The code of a damaged one is read as the SQL of the ledger reads it. */
export const failureOf = (value: unknown): RunFailure | undefined =>
  value === null
    ? undefined
    : parsedOr<RunFailure>(value, {
        code: /^\{"code":"([a-z_]+)",/.exec(String(value))?.[1] ?? 'render_failed',
        message: 'The stored error of this run is damaged.',
      })

function parsedOr<Value>(text: unknown, damaged: Value): Value {
  try {
    return JSON.parse(String(text)) as Value
  } catch {
    return damaged
  }
}

/** Finds the other runs with a job, or with a create at its endpoint that had no answer. Ids have any length. */
export const jobKeyOf = ({ handle, intent }: StoredJob): string | null =>
  handle === undefined && intent === undefined
    ? null
    : createHash('sha256')
        .update(handle === undefined ? `create ${intent?.endpoint}` : `job ${handle.id}`)
        .digest('base64url')
