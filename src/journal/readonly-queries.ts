/**
 * Read-only queries for shell completion and estimates. They do not create, migrate or repair the file. A row in the
 * phase `sending` may belong to a process that has ended.
 */
import { readRows } from '../host/database-file.js'
import { MAX_RUNS } from '../protocol/typical-duration.js'
import { type JournalPhase, phaseOfStored } from './journal-run.js'

export interface RecentRun {
  /** The id, or the key of a row without an id. */
  readonly name: string
  readonly isConfirmed: boolean
  readonly address: string
  readonly phase: JournalPhase
  readonly status: string
  readonly kind: string | undefined
  readonly model: string
  /** The beginning of the prompt; may be empty. */
  readonly prompt: string
}

const PROMPT_LENGTH = 80

/** Returns the latest runs, newest first. Throws if the file is missing or has another format. */
export const readRecentRuns = (path: string, limit: number): readonly RecentRun[] =>
  readRows(
    path,
    `SELECT coalesce(id, key) AS name, id IS NOT NULL AS confirmed, address, phase, status, kind, model,
            substr(json_extract(input, '$.prompt'), 1, ?) AS prompt
     FROM runs WHERE coalesce(id, key) IS NOT NULL ORDER BY created_at DESC, row DESC LIMIT ?`,
    PROMPT_LENGTH,
    limit,
  ).map((row) => ({
    name: String(row.name),
    isConfirmed: row.confirmed === 1,
    address: String(row.address),
    phase: phaseOfStored(row.phase),
    status: String(row.status),
    kind: typeof row.kind === 'string' ? row.kind : undefined,
    model: String(row.model),
    prompt: typeof row.prompt === 'string' ? row.prompt : '',
  }))

/** Returns the labels of the latest labelled runs, newest first. Throws like `readRecentRuns`. */
export const readLabels = (path: string, limit: number): readonly string[] =>
  readRows(
    path,
    `SELECT value FROM (
       SELECT labels, created_at, row FROM runs WHERE labels IS NOT NULL ORDER BY created_at DESC, row DESC LIMIT ?
     ) AS recent, json_each(recent.labels)
     GROUP BY value ORDER BY max(created_at) DESC, max(row) DESC`,
    limit,
  ).map(({ value }) => String(value))

/**
 * Returns the durations of the latest runs of each model in milliseconds, at one address or at all. Throws like
 * `readRecentRuns`.
 */
export function readDurations(
  path: string,
  address: string | undefined,
): ReadonlyMap<string, readonly number[]> {
  const rows = readRows(
    path,
    `SELECT model, took_ms FROM (
       SELECT model, took_ms, row_number() OVER (PARTITION BY model ORDER BY row DESC) AS number
       FROM runs WHERE took_ms IS NOT NULL AND (?1 IS NULL OR address = ?1)
     ) WHERE number <= ?2`,
    address ?? null,
    MAX_RUNS,
  )
  const found = new Map<string, number[]>()
  for (const { model, took_ms } of rows) {
    const known = found.get(String(model)) ?? []
    known.push(Number(took_ms))
    found.set(String(model), known)
  }
  return found
}
