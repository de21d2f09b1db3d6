/** Estimates of a batch: of the runs that its plan creates, and of those that were created. */
import type { Plan, PlanStep } from '../../batch/plan/index.js'
import type { RunEstimate } from '../../journal/index.js'
import { amountOf, amountText, type EstimateSum, sumOf } from '../../protocol/price.js'
import { checkMaxCost, type Prices } from '../models/prices.js'
import { plural } from '../terminal/format.js'

/** A limit that a batch shares with other work, as in a session of `rushes mcp`. */
export interface BatchAllowance {
  /** Undefined: no limit of estimates. */
  readonly maxCost: number | undefined
  /** Called once before the first create, with the most that the batch may create. Throws `usage` if that is too much. */
  reserve(runs: number, sum: EstimateSum): void
  /** Counts creates that were accepted or may have been. */
  take(runs: number, sum: EstimateSum): void
}

export interface ModelEstimate extends EstimateSum {
  readonly runs: number
}

export interface BatchEstimate extends ModelEstimate {
  readonly currency: string
  readonly byModel: ReadonlyMap<string, ModelEstimate>
}

/** Undefined without a model, or if the model has no price. */
export const estimateOf = (
  { entry: { kind, input }, model }: PlanStep,
  prices: Prices,
): RunEstimate | undefined => (model === undefined ? undefined : prices.estimate({ model, kind, input }))

/** Sums the estimates of one run of each step. */
export function sumSteps(steps: readonly PlanStep[], prices: Prices): BatchEstimate {
  const all: (number | undefined)[] = []
  const byModel = new Map<string, (number | undefined)[]>()
  for (const step of steps) {
    const ofModel = (step.model !== undefined && byModel.get(step.model)) || []
    // A model without a price has none for any input. Looking for its document takes a file.
    const isUnpriced = ofModel.length > 0 && ofModel[0] === undefined
    const millionths = isUnpriced ? undefined : estimateOf(step, prices)?.millionths
    all.push(millionths)
    ofModel.push(millionths)
    if (step.model !== undefined) byModel.set(step.model, ofModel)
  }
  const sum = (estimates: (number | undefined)[]) => ({ runs: estimates.length, ...sumOf(estimates) })
  return {
    ...sum(all),
    currency: prices.currency,
    byModel: new Map([...byModel].map(([model, estimates]) => [model, sum(estimates)])),
  }
}

/** Sums the estimates of all runs that a plan may create. */
export const sumPlan = ({ steps }: Plan, prices: Prices): BatchEstimate =>
  sumSteps(
    steps.filter(({ action }) => action.do === 'create'),
    prices,
  )

/** Returns the end of a summary line: `. Estimate: 4.8 USD (2 runs without a price)`. Empty without runs. */
export function estimateNote(
  { runs, millionths, withoutPrice, currency }: BatchEstimate,
  { local }: { readonly local: boolean },
): string {
  if (runs === 0) return ''
  const unpriced = withoutPrice === 0 ? '' : `${plural(withoutPrice, 'run')} without a price`
  if (runs === withoutPrice) return `. No estimate: ${unpriced}`
  const isFree = local && millionths === 0 && withoutPrice === 0
  const more = isFree ? ', because local runs are free' : unpriced && ` (${unpriced})`
  return `. Estimate: ${amountText(millionths, currency)}${more}`
}

/** Keys of the summaries. Null without a price: for a model, and for all runs together. */
export const estimateJson = ({ runs, millionths, withoutPrice, currency, byModel }: BatchEstimate) => ({
  estimate: runs > 0 && runs === withoutPrice ? null : amountOf(millionths),
  currency,
  without_price: withoutPrice,
  estimates: Object.fromEntries(
    [...byModel].map(([model, sum]) => [model, sum.withoutPrice > 0 ? null : amountOf(sum.millionths)]),
  ),
})

interface PricedPlan {
  readonly plan: Plan
  readonly prices: Prices
  readonly missing: readonly unknown[]
  readonly options: {
    readonly mode: string
    readonly maxCost: number | undefined
    readonly allowance?: BatchAllowance | undefined
  }
}

/** Throws `usage` if the runs that the batch may create pass `--max-cost`. */
export async function refuseCost({ plan, prices, missing, options }: PricedPlan): Promise<void> {
  const { mode, maxCost, allowance } = options
  // A missing model is reported as such.
  if ((maxCost ?? allowance?.maxCost) === undefined || missing.length > 0) return
  const models = sumPlan(plan, prices).byModel.keys()
  // A plan works offline.
  if (mode === 'run') await prices.renew(models)
  const sum = sumPlan(plan, prices)
  if (sum.runs === 0 || maxCost === undefined) return
  const unpriced = [...sum.byModel].flatMap(([model, { withoutPrice }]) => (withoutPrice > 0 ? [model] : []))
  checkMaxCost(sum, maxCost, prices.currency, unpriced)
}
