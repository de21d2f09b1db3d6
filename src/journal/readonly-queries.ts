/**
 * The newest rows, for whoever is in a hurry and may not leave a trace: the file is read as it is, and neither made,
 * migrated nor repaired. A row that is being sent may belong to a process that is dead.
 */
import { readRows } from '../host/database.js'
import type { JournalPhase } from './journal-run.js'
import { MOST_RUNS } from './typical-duration.js'

export interface Glimpse {
  /** The id, or the key of a row that has none. */
  readonly name: string
  readonly isConfirmed: boolean
  readonly address: string
  readonly phase: JournalPhase
  readonly status: string
  readonly kind: string | undefined
  readonly model: string
  /** The beginning of the prompt; empty where there is none. */
  readonly prompt: string
}

const PROMPT_LENGTH = 80

/** Newest first. Throws when there is no such file, and when it is of a format that lacks what is asked for. */
export const glanceAt = (path: string, most: number): readonly Glimpse[] =>
  readRows(
    path,
    `SELECT coalesce(id, key) AS name, id IS NOT NULL AS confirmed, address, phase, status, kind, model,
            substr(json_extract(input, '$.prompt'), 1, ?) AS prompt
     FROM runs WHERE coalesce(id, key) IS NOT NULL ORDER BY created_at DESC, row DESC LIMIT ?`,
    PROMPT_LENGTH,
    most,
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

/** How long the latest runs of each model took, of one address or, where none is named, of all. Throws as above. */
export function durationsAt(
  path: string,
  address: string | undefined,
): ReadonlyMap<string, readonly number[]> {
  const rows = readRows(
    path,
    `SELECT model, took_ms FROM (
       SELECT model, took_ms, row_number() OVER (PARTITION BY model ORDER BY row DESC) AS place
       FROM runs WHERE took_ms IS NOT NULL AND (?1 IS NULL OR address = ?1)
     ) WHERE place <= ?2`,
    address ?? null,
    MOST_RUNS,
  )
  const found = new Map<string, number[]>()
  for (const { model, took_ms } of rows) {
    const known = found.get(String(model)) ?? []
    known.push(Number(took_ms))
    found.set(String(model), known)
  }
  return found
}
