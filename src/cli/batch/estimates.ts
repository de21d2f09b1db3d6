/** Estimates of a batch: of the runs that its plan creates, and of those that were created. */
import type { Plan, PlanStep } from '../../batch/plan/index.js'
import type { RunEstimate } from '../../journal/index.js'
import { amountOf, amountText } from '../../protocol/price.js'
import type { CostEstimate, Prices } from '../models/prices.js'
import { plural } from '../terminal/format.js'

const pricedRun = ({ entry: { kind, input }, model }: PlanStep) => ({ model, kind, input })

/** Undefined without a model, or if the model has no price. */
export const estimateOf = (step: PlanStep, prices: Prices): RunEstimate | undefined =>
  prices.estimate(pricedRun(step))

/** Sums the estimates of one run of each step. */
export const sumSteps = (steps: readonly PlanStep[], prices: Prices): CostEstimate =>
  prices.sum(steps.map(pricedRun))

/** Sums the estimates of all runs that a plan may create. */
export const sumPlan = ({ steps }: Plan, prices: Prices): CostEstimate =>
  sumSteps(
    steps.filter(({ action }) => action.do === 'create'),
    prices,
  )

/** Returns the end of a summary line: `. Estimate: 4.8 USD (2 runs without a price)`. Empty without runs. */
export function estimateNote(
  { runs, millionths, withoutPrice, currency }: CostEstimate,
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
export const estimateJson = ({ runs, millionths, withoutPrice, currency, byModel }: CostEstimate) => ({
  estimate: runs > 0 && runs === withoutPrice ? null : amountOf(millionths),
  currency,
  without_price: withoutPrice,
  estimates: Object.fromEntries(
    [...byModel].map(([model, sum]) => [model, sum.withoutPrice > 0 ? null : amountOf(sum.millionths)]),
  ),
})
