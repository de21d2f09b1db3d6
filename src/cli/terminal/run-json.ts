/** Formats a run as JSON, for `--json`; docs/schemas describes it. Every key is present, and an unknown value is null. */

import type { RushesError } from '../../errors.js'
import type { JournalRun } from '../../journal/index.js'
import type { DownloadedFile } from '../../protocol/media.js'
import { isObject } from '../../protocol/parse.js'
import { amountOf } from '../../protocol/price.js'
import type { RunState } from '../../protocol/run-state.js'
import { isoOrNull } from '../../protocol/units.js'
import type { KnownRun } from '../../runs/run.js'

/** A run at the end of a command. */
export interface RunRecord extends KnownRun {
  /** Last status; undefined when no status was received. */
  readonly state: RunState | undefined
  readonly files: readonly DownloadedFile[]
  readonly error: RushesError | undefined
  /** ISO 8601 in UTC, by this machine's clock. Used when the service sends no time. */
  readonly finishedAt?: string | undefined
}

export function runJson({ state, ...run }: RunRecord): object {
  // The run, or the response to its create.
  const service = state?.service ?? run.service
  return withNulls({
    id: run.id,
    kind: run.kind,
    model: run.model ?? textField(service, 'model'),
    status: state?.status ?? textField(service, 'status'),
    output: outputOf(state),
    files: run.files,
    error: shortError(run.error),
    created_at: state?.createdAt ?? isoOrNull(run.createdAtMs),
    finished_at: state?.finishedAt ?? run.finishedAt ?? isoOrNull(run.finishedAtMs),
    elapsed_ms: run.elapsedMs && Math.round(run.elapsedMs),
    service,
  })
}

/** A run of the journal. */
export const listJson = (run: JournalRun, files: readonly DownloadedFile[]): object =>
  withNulls({
    id: run.id,
    kind: run.kind,
    model: run.model,
    status: run.status,
    output: outputOf(run),
    files,
    error: shortError(run.error),
    created_at: isoOrNull(run.createdAtMs),
    finished_at: isoOrNull(run.finishedAtMs),
    elapsed_ms: run.elapsedMs,
    service: null,
    key: run.key,
    address: run.address,
    profile: run.profile,
    input: run.input,
    request_id: run.requestId,
    estimate: run.estimate && amountOf(run.estimate.millionths),
    currency: run.estimate?.currency,
    labels: run.labels,
    name: run.name,
    manifest: run.manifest,
    answer: run.answer && { status: run.answer.status ?? null, text: run.answer.text ?? null },
  })

const withNulls = (values: Readonly<Record<string, unknown>>): object =>
  Object.fromEntries(Object.entries(values).map(([key, value]) => [key, value ?? null]))

const outputOf = (run: { readonly phase: string; readonly urls: readonly string[] } | undefined) =>
  run?.phase === 'succeeded' ? { urls: run.urls } : null

const textField = (value: unknown, name: string): string | undefined => {
  const found = isObject(value) ? value[name] : undefined
  return typeof found === 'string' ? found : undefined
}

const shortError = (error: { readonly code: string; readonly message: string } | undefined) =>
  error && { code: error.code, message: error.message }
