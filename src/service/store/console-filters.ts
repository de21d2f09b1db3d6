/** The filters of the console's lists as SQL, for both databases. */
import type { EntryFilter, FoundRuns, ListedRun, RunFilter } from './console-store.js'

/** Its `?` stands for the value. */
export interface Condition {
  readonly sql: string
  readonly value?: string | number
}

const ifGiven = (sql: string, value: string | number | undefined): readonly Condition[] =>
  value === undefined ? [] : [{ sql, value }]

/** How many runs one page looks at: their prompts, or only their entries in an index. */
const MAX_SEARCHED = 2_000
const MAX_FILTERED = 50_000

/** Undefined for a list without a filter, which looks at no more than it shows. */
export function maxLookedAt({ status, kind, model, key, search }: RunFilter): number | undefined {
  if (search !== undefined) return MAX_SEARCHED
  return [status, kind, model, key].every((each) => each === undefined) ? undefined : MAX_FILTERED
}

/** `floor` is the first run that this page does not look at; undefined: it looks at all. */
export function foundRuns(found: readonly ListedRun[], limit: number, floor: number | undefined): FoundRuns {
  const runs = found.slice(0, limit)
  if (found.length > limit) return { runs, next: runs.at(-1)?.sequence }
  return { runs, next: floor === undefined ? undefined : floor + 1 }
}

/** Of all runs from which the filter chooses. */
export const rangeConditions = (filter: RunFilter): readonly Condition[] => [
  { sql: 'runs.account_id = ?', value: filter.accountId },
  ...ifGiven('runs.sequence < ?', filter.before),
  ...ifGiven('runs.sequence > ?', filter.after),
]

/** All but the search. */
export const runConditions = (filter: RunFilter, floor: number | undefined): readonly Condition[] => [
  ...rangeConditions(filter),
  ...ifGiven('runs.sequence > ?', floor),
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
