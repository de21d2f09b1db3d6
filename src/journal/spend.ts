/**
 * Exact sums of what the runs of the journal cost, by model, day or label: the estimates; and the limit of
 * the estimates of 24 hours, of all processes together. Amounts in several currencies are never added.
 */
import { RushesError } from '../errors.js'
import type { OpenDatabase, Row } from '../host/database.js'
import { addTo } from '../protocol/parse.js'
import { amountText } from '../protocol/price.js'
import { OUTCOME_UNKNOWN } from '../protocol/run-state.js'
import { DAY_MS } from '../protocol/units.js'
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

/** Returns the names of the groups that a run is in. */
const NAMES: Readonly<Record<SpendGrouping, (run: Row) => readonly string[]>> = {
  model: ({ model }) => [String(model)],
  label: ({ labels }) => [...new Set(labelsOfColumn(labels))],
  day: ({ created_at }) => [dayOf(new Date(Number(created_at)))],
}

/** In local time. */
function dayOf(date: Date): string {
  const two = (value: number) => String(value).padStart(2, '0')
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
}

export function sumSpend(db: OpenDatabase, filter: ListFilter, by: SpendGrouping): Spend {
  const { where, values } = whereOf(filter)
  const runs = db.all(
    `SELECT model, labels, created_at, estimate, currency,
       CASE WHEN phase IN ('sending', 'going') THEN 'unfinished'
         WHEN error_code = '${OUTCOME_UNKNOWN}' THEN 'unconfirmed' ELSE phase END AS outcome
     FROM runs INDEXED BY runs_by_time ${where}`,
    ...values,
  )
  const byName = new Map<string | undefined, Row[]>()
  for (const run of runs) {
    const names = NAMES[by](run)
    for (const name of names.length === 0 ? [undefined] : names) addTo(byName, name, run)
  }
  const names = [...byName.keys()].sort()
  return {
    groups: names.flatMap((name) => sumsOf(name, byName.get(name) ?? [])),
    total: sumsOf(undefined, runs),
  }
}

function sumsOf(name: string | undefined, runs: readonly Row[]): readonly SpendSum[] {
  const byCurrency = new Map<string | undefined, Row[]>()
  for (const run of runs) addTo(byCurrency, run.currency === null ? undefined : String(run.currency), run)
  const withoutPrice = byCurrency.get(undefined)?.length ?? 0
  byCurrency.delete(undefined)
  // Runs without a price are counted with those of the currency that most others have.
  const most = [...byCurrency].sort(([, one], [, other]) => other.length - one.length)
  const currencies = most.length === 0 ? [undefined] : most.map(([currency]) => currency)
  return currencies.map((currency, at) => {
    const priced = byCurrency.get(currency) ?? []
    const unpriced = at > 0 ? 0 : withoutPrice
    const amounts = { succeeded: 0n, failed: 0n, unfinished: 0n, unconfirmed: 0n }
    for (const { outcome, estimate } of priced)
      amounts[outcome as keyof typeof amounts] += BigInt(Number(estimate))
    return { name, currency, runs: priced.length + unpriced, withoutPrice: unpriced, amounts }
  })
}

export interface DayLimit {
  readonly millionths: number
  /** Estimates in other currencies are not in the sum. */
  readonly currency: string
}

/** Every row counts, also a failed run: whether the service refunds it is not known. A create that was not sent has no row. */
const DAY_SUM = `SELECT sum(estimate / 1000000) AS units, sum(estimate % 1000000) AS millionths
  FROM runs INDEXED BY runs_by_time WHERE created_at > ? AND currency = ?`

/** Throws `usage` if creates with this estimate would pass the limit now. What is free always passes. */
export function checkDay(db: OpenDatabase, limit: DayLimit, millionths: number, nowMs: number): void {
  const { currency } = limit
  const sum = db.get(DAY_SUM, nowMs - DAY_MS, currency)
  const spent = BigInt(Number(sum?.units ?? 0)) * 1_000_000n + BigInt(Number(sum?.millionths ?? 0))
  if (millionths === 0 || spent + BigInt(millionths) <= BigInt(limit.millionths)) return
  throw new RushesError(
    'usage',
    `The estimate is ${amountText(millionths, currency)}, and that of the last 24 hours ${amountText(spent, currency)}, ` +
      `but maxCostPerDay allows ${amountText(limit.millionths, currency)}: its create was not sent.`,
    {
      hint: 'To change the limit: `rushes config set maxCostPerDay <amount>`, or RUSHES_MAX_COST_PER_DAY.',
    },
  )
}
