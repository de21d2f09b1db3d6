/**
 * Exact sums of what the runs of the journal cost, by model, day or label: what was charged, else the estimate; and the limit of
 * the estimates of 24 hours, of all processes together. Amounts in several currencies are never added.
 */
import { RushesError } from '../errors.js'
import type { OpenDatabase, Row, SqlValue } from '../host/database.js'
import { addTo } from '../protocol/lists.js'
import { amountText } from '../protocol/price.js'
import { OUTCOME_UNKNOWN } from '../protocol/run-state.js'
import { type ListFilter, labelsOfColumn, whereOf } from './rows.js'

export const SPEND_GROUPINGS = ['model', 'day', 'label'] as const
export type SpendGrouping = (typeof SPEND_GROUPINGS)[number]

export const SPEND_OUTCOMES = ['succeeded', 'failed', 'unfinished', 'unconfirmed'] as const

/** A group of runs. A group has one for each currency; the first of them counts the runs without a price. */
export interface SpendSum {
  /** Model, label, or day such as `2026-01-31`. Undefined for runs without a label, and for the total. */
  readonly name: string | undefined
  /** Undefined if no run of the group has a price. */
  readonly currency: string | undefined
  readonly runs: number
  readonly withoutPrice: number
  /** In millionths. */
  readonly amounts: Readonly<Record<(typeof SPEND_OUTCOMES)[number], bigint>>
}

export interface Spend {
  /** Sorted by name. A run with several labels is in several groups. */
  readonly groups: readonly SpendSum[]
  /** Counts each run once. */
  readonly total: readonly SpendSum[]
}

interface Grouping {
  readonly column: string
  /** Tables, and their values. */
  readonly from?: string
  readonly values?: readonly SqlValue[]
  /** Names of the groups of a value of the column. */
  namesOf(value: unknown): readonly string[]
}

const RUNS = 'runs INDEXED BY runs_by_time'

const GROUPINGS: Readonly<Record<SpendGrouping, (db: OpenDatabase) => Grouping>> = {
  model: () => ({ column: 'model', namesOf: (model) => [String(model)] }),
  label: () => ({ column: 'labels', namesOf: (labels) => [...new Set(labelsOfColumn(labels))] }),
  // SQLite's 'localtime' needs the time zone files of the system, which small images do not have.
  day: (db) => ({
    column: 'midnight',
    from: `(SELECT value AS midnight, lead(value, 1, ${Number.MAX_SAFE_INTEGER}) OVER (ORDER BY value) AS next
       FROM json_each(?)) CROSS JOIN ${RUNS} ON created_at >= midnight AND created_at < next`,
    values: [JSON.stringify(midnightsOf(db))],
    namesOf: (midnight) => [dayOf(new Date(Number(midnight)))],
  }),
}

/** Returns the beginnings of all local days from the first run to the last, in milliseconds since the epoch. */
function midnightsOf(db: OpenDatabase): readonly number[] {
  const { first, last } = db.get('SELECT min(created_at) AS first, max(created_at) AS last FROM runs') ?? {}
  const midnights: number[] = []
  const day = new Date(Number(first))
  day.setHours(0, 0, 0, 0)
  for (; first !== null && day.getTime() <= Number(last); day.setHours(24, 0, 0, 0))
    midnights.push(day.getTime())
  return midnights
}

function dayOf(date: Date): string {
  const two = (value: number) => String(value).padStart(2, '0')
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
}

export function sumSpend(db: OpenDatabase, filter: ListFilter, by: SpendGrouping): Spend {
  const { where, values: filtered } = whereOf(filter)
  // Units and millionths apart: a sum of large estimates in millionths could exceed 2^53.
  const [rows, namesOf] = db.snapshot(() => {
    const { column, from = RUNS, values = [], namesOf } = GROUPINGS[by](db)
    const amount = 'coalesce(charged, estimate)'
    const sql = `SELECT ${column} AS name, coalesce(charged_currency, currency) AS currency, count(*) AS runs,
         CASE WHEN phase IN ('sending', 'going') THEN 'unfinished'
           WHEN error_code = '${OUTCOME_UNKNOWN}' THEN 'unconfirmed' ELSE phase END AS outcome,
         sum(${amount} / 1000000) AS units, sum(${amount} % 1000000) AS millionths
       FROM ${from} ${where}GROUP BY 1, 2, outcome`
    return [db.all(sql, ...values, ...filtered), namesOf]
  })
  const byName = new Map<string | undefined, Row[]>()
  for (const row of rows) {
    const names = namesOf(row.name)
    for (const name of names.length === 0 ? [undefined] : names) addTo(byName, name, row)
  }
  const names = [...byName.keys()].sort()
  return {
    groups: names.flatMap((name) => sumsOf(name, byName.get(name) ?? [])),
    total: sumsOf(undefined, rows),
  }
}

function sumsOf(name: string | undefined, rows: readonly Row[]): readonly SpendSum[] {
  const countOf = (counted: readonly Row[]) => counted.reduce((sum, { runs }) => sum + Number(runs), 0)
  const currencies = [
    ...new Set(rows.flatMap(({ currency }) => (currency === null ? [] : [String(currency)]))),
  ]
  return (currencies.length === 0 ? [undefined] : currencies.sort()).map((currency, at) => {
    const priced = rows.filter((row) => row.currency !== null && row.currency === currency)
    const withoutPrice = at > 0 ? 0 : countOf(rows.filter((row) => row.currency === null))
    const amounts = { succeeded: 0n, failed: 0n, unfinished: 0n, unconfirmed: 0n }
    for (const { outcome, units, millionths } of priced)
      amounts[outcome as keyof typeof amounts] +=
        BigInt(Number(units)) * 1_000_000n + BigInt(Number(millionths))
    return { name, currency, runs: countOf(priced) + withoutPrice, withoutPrice, amounts }
  })
}

export interface DayLimit {
  readonly millionths: number
  /** Estimates in other currencies are not in the sum. */
  readonly currency: string
}

const DAY_MS = 86_400_000

/** Every row counts, also a failed run: whether the service refunds it is not known. A create that was not sent has no row. */
const LAST_DAY = 'FROM runs INDEXED BY runs_by_time WHERE created_at > ? AND currency = ?'

const DAY_SUM = `SELECT sum(estimate / 1000000) AS units, sum(estimate % 1000000) AS millionths ${LAST_DAY}`
const DAY_ESTIMATES = `SELECT created_at, estimate ${LAST_DAY} AND estimate > 0 ORDER BY created_at`

/** Throws `usage` if creates with this estimate would pass the limit now. What is free always passes. */
export function checkDay(db: OpenDatabase, limit: DayLimit, millionths: number, nowMs: number): void {
  const { currency } = limit
  const since = [nowMs - DAY_MS, currency] as const
  const sum = db.get(DAY_SUM, ...since)
  const spent = BigInt(Number(sum?.units ?? 0)) * 1_000_000n + BigInt(Number(sum?.millionths ?? 0))
  const over = spent + BigInt(millionths) - BigInt(limit.millionths)
  if (millionths === 0 || over <= 0n) return
  throw new RushesError(
    'usage',
    `The estimate is ${amountText(millionths, currency)}, and that of the last 24 hours ${amountText(spent, currency)}, ` +
      `but maxCostPerDay allows ${amountText(limit.millionths, currency)}: its create was not sent.`,
    {
      hint:
        `${freeText(db.all(DAY_ESTIMATES, ...since), over)} To change the limit: ` +
        '`rushes config set maxCostPerDay <amount>`, or RUSHES_MAX_COST_PER_DAY.',
    },
  )
}

/** When the oldest estimates are older than 24 hours, so that there is room. */
function freeText(oldest: ReturnType<OpenDatabase['all']>, over: bigint): string {
  let rest = over
  for (const { created_at, estimate } of oldest) {
    rest -= BigInt(Number(estimate))
    if (rest > 0n) continue
    const at = new Date(Number(created_at) + DAY_MS)
    return `There is room again at ${at.toISOString().replace(/:\d\d\.\d+Z/, 'Z')}.`
  }
  return 'The estimate alone is higher than the limit.'
}
