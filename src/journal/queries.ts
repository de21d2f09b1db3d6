/** The statements that list runs of the journal. */
import { sep } from 'node:path'
import type { SqlValue } from '../host/database.js'

/**
 * Lists all addresses by jumping from one address to the next in the index. Fast, because a machine has many runs but
 * few addresses.
 */
export const ADDRESSES = `
  WITH RECURSIVE places (address) AS (
    SELECT min(address) FROM runs
    UNION ALL
    SELECT (SELECT min(address) FROM runs WHERE runs.address > places.address)
    FROM places WHERE places.address IS NOT NULL
  )
  SELECT address FROM places WHERE address IS NOT NULL`

export interface ListFilter {
  readonly address?: string | undefined
  /** Status as it is shown; not case-sensitive. */
  readonly status?: string | undefined
  readonly kind?: string | undefined
  readonly model?: string | undefined
  /** The run must have all of them. */
  readonly labels?: readonly string[] | undefined
  /** Absolute path of the manifest of its batch. */
  readonly manifest?: string | undefined
  /** Absolute path: the run was created in this folder or below it, or its manifest or a file is there. */
  readonly folder?: string | undefined
  /** Created at or after `sinceMs` and before `beforeMs`; milliseconds since the epoch. */
  readonly sinceMs?: number | undefined
  readonly beforeMs?: number | undefined
  /** Maximum number of runs. Undefined: no limit. */
  readonly limit?: number | undefined
}

const CONDITIONS = {
  address: 'address = ?',
  status: 'status = ? COLLATE NOCASE',
  kind: 'kind = ?',
  model: 'model = ?',
  manifest: 'manifest = ?',
  sinceMs: 'created_at >= ?',
  beforeMs: 'created_at < ?',
} as const satisfies Record<Exclude<keyof ListFilter, 'limit' | 'labels' | 'folder'>, string>

const HAS_LABEL = 'EXISTS (SELECT 1 FROM json_each(labels) WHERE value = ?)'

/** The first value is the separator of paths, the others are the folder with a separator at its end. */
const IS_IN_FOLDER = `(instr(folder || ?, ?) = 1 OR instr(manifest, ?) = 1
  OR EXISTS (SELECT 1 FROM files WHERE files.row = runs.row AND instr(files.path, ?) = 1))`

/** Returns the condition of a filter, without its limit: empty, or `WHERE …` with a space at its end. */
export function whereOf(filter: ListFilter) {
  const names = (Object.keys(CONDITIONS) as (keyof typeof CONDITIONS)[]).filter(
    (name) => filter[name] !== undefined,
  )
  const { labels = [], folder } = filter
  const conditions = [
    ...names.map((name) => CONDITIONS[name]),
    ...labels.map(() => HAS_LABEL),
    ...(folder === undefined ? [] : [IS_IN_FOLDER]),
  ]
  const within = folder?.endsWith(sep) ? folder : `${folder}${sep}`
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')} `
  const values: readonly SqlValue[] = [
    ...names.map((name) => filter[name] ?? null),
    ...labels,
    ...(folder === undefined ? [] : [sep, within, within, within]),
  ]
  return { where, values }
}

/**
 * Builds the statement of a list. Every list reads the index by time, so that no sorting is needed; a filter that
 * matches none of 100,000 runs takes 40 ms. An index for each filter would save this time, but each write would take 50
 * % longer. Exported so that a test can check the query plan.
 */
export function listStatement(filter: ListFilter) {
  const { where, values } = whereOf(filter)
  const sql = `SELECT * FROM runs INDEXED BY runs_by_time ${where}ORDER BY created_at DESC, row DESC LIMIT ?`
  return { sql, values: [...values, filter.limit ?? -1] }
}
