/**
 * Read-only queries for shell completion and estimates, and the typical duration of a model's runs: the file is not
 * created, migrated or repaired. A row in the phase `sending` may belong to a process that has ended.
 */
import { readRows } from '../host/database-file.js'
import { type JournalPhase, phaseOfStored } from './journal-run.js'

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
    phase: phaseOfStored(row.phase),
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

export interface TypicalDuration {
  readonly medianMs: number
  /** The first and third quartile. */
  readonly fromMs: number
  readonly toMs: number
  readonly runs: number
}

/** Fewer say little about the next run. */
const MIN_RUNS = 3
/** Only the latest count, since services become faster and slower. */
export const MAX_RUNS = 25

/** From runs that were observed to their end. */
export function typicalDurationOf(tookMs: readonly number[]): TypicalDuration | undefined {
  if (tookMs.length < MIN_RUNS) return undefined
  const sorted = [...tookMs].sort((a, b) => a - b)
  const at = (share: number) => sorted[Math.round((sorted.length - 1) * share)] ?? 0
  return { medianMs: at(0.5), fromMs: at(0.25), toMs: at(0.75), runs: sorted.length }
}
