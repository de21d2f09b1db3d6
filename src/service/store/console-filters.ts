/** The filters of the console's lists as SQL, for both databases. */
import type { EntryFilter, RunFilter } from './console-store.js'

/** Its `?` stands for the value. */
export interface Condition {
  readonly sql: string
  readonly value?: string | number
}

const ifGiven = (sql: string, value: string | number | undefined): readonly Condition[] =>
  value === undefined ? [] : [{ sql, value }]

/** All but the search. */
export const runConditions = (filter: RunFilter): readonly Condition[] => [
  { sql: 'runs.account_id = ?', value: filter.accountId },
  ...ifGiven('runs.sequence < ?', filter.before),
  ...ifGiven('runs.sequence > ?', filter.after),
  ...ifGiven('runs.status = ?', filter.status),
  ...ifGiven('runs.kind = ?', filter.kind),
  ...ifGiven('runs.model = ?', filter.model),
  ...(filter.key === 'console' ? [{ sql: 'runs.key_id IS NULL' }] : ifGiven('runs.key_id = ?', filter.key)),
]

export const entryConditions = (filter: EntryFilter): readonly Condition[] => [
  { sql: 'credits.account_id = ?', value: filter.accountId },
  ...ifGiven('credits.sequence < ?', filter.before),
  ...ifGiven('credits.kind = ?', filter.kind),
  ...ifGiven('credits.key_id = ?', filter.keyId),
  ...ifGiven('credits.created_at >= ?', filter.fromMs),
  ...ifGiven('credits.created_at < ?', filter.untilMs),
]

export interface Where {
  /** With numbered parameters. */
  readonly sql: string
  readonly values: readonly (string | number)[]
  /** Of the parameter after them. */
  readonly next: string
}

export function whereOf(conditions: readonly Condition[], sign: '?' | '$'): Where {
  const values: (string | number)[] = []
  const parts = conditions.map(({ sql, value }) => {
    if (value === undefined) return sql
    values.push(value)
    return sql.replace('?', `${sign}${values.length}`)
  })
  return { sql: parts.join(' AND '), values, next: `${sign}${values.length + 1}` }
}
