/** The runs of a list, by what they are asked for. Every filter has an index, and nothing is sorted. */
import type { OpenDatabase, Value } from '../host/database.js'
import { type JournalRun, runOfRow } from './journal-run.js'

export interface ListFilter {
  readonly address?: string | undefined
  /** Exactly as it is shown. */
  readonly status?: string | undefined
  readonly kind?: string | undefined
  readonly model?: string | undefined
  /** Created at that instant or later, and before that one; milliseconds since the epoch. */
  readonly sinceMs?: number | undefined
  readonly beforeMs?: number | undefined
  /** Undefined: all. */
  readonly limit?: number | undefined
}

const CONDITIONS = {
  address: 'address = ?',
  status: 'status = ?',
  kind: 'kind = ?',
  model: 'model = ?',
  sinceMs: 'created_at >= ?',
  beforeMs: 'created_at < ?',
} as const satisfies Record<Exclude<keyof ListFilter, 'limit'>, string>

/** The statement and its values, so that a test can look at its plan. */
export function listStatement(filter: ListFilter): {
  readonly sql: string
  readonly values: readonly Value[]
} {
  const names = (Object.keys(CONDITIONS) as (keyof typeof CONDITIONS)[]).filter(
    (name) => filter[name] !== undefined,
  )
  const where = names.length === 0 ? '' : `WHERE ${names.map((name) => CONDITIONS[name]).join(' AND ')} `
  return {
    sql: `SELECT * FROM runs ${where}ORDER BY created_at DESC, row DESC LIMIT ?`,
    values: [...names.map((name) => filter[name] ?? null), filter.limit ?? -1],
  }
}

/** The newest first. */
export function listRuns(db: OpenDatabase, filter: ListFilter): readonly JournalRun[] {
  const { sql, values } = listStatement(filter)
  return db.all(sql, ...values).map(runOfRow)
}
