/**
 * Read-only queries for shell completion. They do not create, migrate or repair the file. A row in the
 * phase `sending` may belong to a process that has ended.
 */
import { readRows } from '../host/database-file.js'
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
