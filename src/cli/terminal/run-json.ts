/**
 * Formats a run as JSON, one row for each key, for `--json` and `list --json`; docs/schemas describes them.
 * Every key is present, and an unknown value is null.
 */

import type { RushesError } from '../../errors.js'
import type { JournalRun } from '../../journal/index.js'
import type { DownloadedFile } from '../../protocol/media.js'
import { isObject } from '../../protocol/parse.js'
import { amountOf } from '../../protocol/price.js'
import type { RunState } from '../../protocol/run-state.js'

/** Data of a run at the end of a command. */
export interface RunRecord {
  readonly id: string
  readonly kind: string | undefined
  readonly model: string | undefined
  /** Last status; undefined when no status was received. */
  readonly state: RunState | undefined
  /** Last response body from the service: the run, or the body of the 201 response to the create. */
  readonly service: unknown
  readonly files: readonly DownloadedFile[]
  readonly error: RushesError | undefined
  /** ISO 8601 in UTC, by this machine's clock. Used when the service sends no times. */
  readonly createdAt: string | undefined
  readonly finishedAt: string | undefined
  /** Time in ms from sending the create to the first final status. */
  readonly elapsedMs: number | undefined
}

/** A run of the journal with its files. */
interface JournalEntry {
  readonly run: JournalRun
  readonly files: readonly DownloadedFile[]
}

interface JournalKey {
  /** Returns the value of the key; undefined is printed as null. */
  ofEntry(entry: JournalEntry): unknown
}

interface RunKey extends JournalKey {
  ofRecord(record: RunRecord): unknown
}

/** Keys that every command prints for a run. */
const RUN_KEYS: Readonly<Record<string, RunKey>> = {
  id: { ofRecord: ({ id }) => id, ofEntry: ({ run }) => run.id },
  kind: { ofRecord: ({ kind }) => kind, ofEntry: ({ run }) => run.kind },
  model: {
    ofRecord: ({ model, service }) => model ?? textField(service, 'model'),
    ofEntry: ({ run }) => run.model,
  },
  status: {
    ofRecord: ({ state, service }) => state?.status ?? textField(service, 'status'),
    ofEntry: ({ run }) => run.status,
  },
  output: {
    ofRecord: ({ state }) => (state?.phase === 'succeeded' ? { urls: state.urls } : null),
    ofEntry: ({ run }) => (run.phase === 'succeeded' ? { urls: run.urls } : null),
  },
  files: { ofRecord: ({ files }) => files, ofEntry: ({ files }) => files },
  error: { ofRecord: ({ error }) => shortError(error), ofEntry: ({ run }) => shortError(run.error) },
  created_at: {
    ofRecord: ({ state, createdAt }) => state?.createdAt ?? createdAt,
    ofEntry: ({ run }) => isoTime(run.createdAtMs),
  },
  finished_at: {
    ofRecord: ({ state, finishedAt }) => state?.finishedAt ?? finishedAt,
    ofEntry: ({ run }) => isoTime(run.finishedAtMs),
  },
  elapsed_ms: {
    ofRecord: ({ elapsedMs }) => (elapsedMs === undefined ? null : Math.round(elapsedMs)),
    ofEntry: ({ run }) => run.elapsedMs,
  },
  service: { ofRecord: ({ service }) => service, ofEntry: () => null },
}

/** Keys that only runs of the journal have. */
const JOURNAL_KEYS: Readonly<Record<string, JournalKey>> = {
  key: { ofEntry: ({ run }) => run.key },
  address: { ofEntry: ({ run }) => run.address },
  profile: { ofEntry: ({ run }) => run.profile },
  input: { ofEntry: ({ run }) => run.input },
  request_id: { ofEntry: ({ run }) => run.requestId },
  estimate: { ofEntry: ({ run: { estimate } }) => estimate && amountOf(estimate.millionths) },
  currency: { ofEntry: ({ run }) => run.estimate?.currency },
  labels: { ofEntry: ({ run }) => run.labels },
  name: { ofEntry: ({ run }) => run.name },
  manifest: { ofEntry: ({ run }) => run.manifest },
  answer: {
    ofEntry: ({ run: { answer } }) => answer && { status: answer.status ?? null, text: answer.text ?? null },
  },
}

const runKeys = Object.entries(RUN_KEYS)
const journalKeys = [...runKeys, ...Object.entries(JOURNAL_KEYS)]

export const runJson = (run: RunRecord): object =>
  Object.fromEntries(runKeys.map(([key, { ofRecord }]) => [key, ofRecord(run) ?? null]))

export const listJson = (run: JournalRun, files: readonly DownloadedFile[]): object =>
  Object.fromEntries(journalKeys.map(([key, { ofEntry }]) => [key, ofEntry({ run, files }) ?? null]))

const textField = (value: unknown, name: string): string | undefined => {
  const found = isObject(value) ? value[name] : undefined
  return typeof found === 'string' ? found : undefined
}

const shortError = (error: { readonly code: string; readonly message: string } | undefined) =>
  error && { code: error.code, message: error.message }

const isoTime = (ms: number | undefined): string | undefined =>
  ms === undefined ? undefined : new Date(ms).toISOString()
