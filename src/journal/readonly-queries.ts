/**
 * Read-only queries for shell completion and estimates: the file is not created, migrated or repaired. A row in the phase
 * `sending` may belong to a process that has ended.
 */
import { readRows } from '../host/readonly-database.js'
import type { JournalPhase } from './journal-run.js'
import { MAX_RUNS } from './typical-duration.js'

export interface RecentRun {
  /** The id, or the key of a row that has none. */
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

/** Newest first. Throws when the file is missing or has another format. */
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
    phase: row.phase as JournalPhase,
    status: String(row.status),
    kind: typeof row.kind === 'string' ? row.kind : undefined,
    model: String(row.model),
    prompt: typeof row.prompt === 'string' ? row.prompt : '',
  }))

/** The durations of the latest runs of each model, at one address or at all. Throws as `readRecentRuns`. */
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
