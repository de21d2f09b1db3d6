/** Formats the rows of a batch, with their planned actions or their results, and the estimate: as cells, lines and JSON. Pure. */
import { outputsOf } from '../../batch/lock/lock.js'
import { OPEN } from '../../batch/manifest/outputs.js'
import { isInPlace, type Plan, type PlanStep, type RowAction } from '../../batch/plan/index.js'
import type { RowResult } from '../../batch/results/rows.js'
import { amountOf, amountText } from '../../protocol/price.js'
import { printable } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import type { CostEstimate, Prices } from '../models/prices.js'
import { plural } from '../terminal/format.js'

function reasonOf(action: RowAction): string {
  switch (action.do) {
    case 'up_to_date':
    case 'skip':
      return ''
    case 'unconfirmed':
      return action.key ?? ''
    case 'create': {
      const { changed = [], why } = action
      return why === 'out_of_date' ? `${changed.join(', ') || 'input'} changed` : why
    }
    default:
      return action.why
  }
}

/**
 * Returns the cells of a row, in the words of the JSON form: its planned action or its result, name, file, and the reason
 * or the error. `open`: state of a row without a result.
 */
export function cellsOf(step: PlanStep, row?: RowResult, open?: string): readonly string[] {
  const { entry, file, action } = step
  const error = row?.error && [row.run, row.error.message].filter(Boolean).join(': ')
  const needs = row?.blockedBy && `needs ${row.blockedBy}`
  const state = row?.result ?? open ?? action.do
  return [state, entry.name, row?.made?.file ?? file, error ?? needs ?? reasonOf(action)].map(printable)
}

const USUAL_EXTENSIONS: Readonly<Record<string, string>> = { image: '.png', video: '.mp4' }

/** Returns the cells for a person: a file whose extension is not known yet has the usual one of its kind. */
export function shownCells(step: PlanStep, row?: RowResult, open?: string): readonly string[] {
  const file = step.file.replace(OPEN, USUAL_EXTENSIONS[step.entry.kind ?? ''] ?? '')
  return cellsOf({ ...step, file }, row, open)
}

/** All keys are always present. Unknown values are null. */
export const stepJson = ({ entry, model, hash, file, action, sources, locked, outputs }: PlanStep) => ({
  name: entry.name,
  action: action.do,
  reason: reasonOf(action) || null,
  kind: entry.kind ?? null,
  model: model ?? null,
  hash: hash ?? null,
  file,
  run: action.do === 'download' ? action.run : null,
  uses: sources,
  /** Those in the lock file. */
  outputs: outputsOf(locked).map(({ file: known, sha256, bytes }, at) => {
    const fact = outputs[at]?.fact ?? { is: 'missing' }
    const there = isInPlace(fact, sha256) ? 'in_place' : 'different'
    return {
      file: outputs[at]?.file ?? known,
      sha256,
      bytes,
      state: fact.is === 'missing' ? 'missing' : there,
    }
  }),
  line: entry.at.line,
})

/** All keys are always present. Unknown values are null. */
export const rowJson = ({ step, result, made, run, error, blockedBy }: RowResult) => ({
  name: step.entry.name,
  result,
  kind: step.entry.kind ?? null,
  model: step.model ?? null,
  run: run ?? null,
  file: made?.file ?? null,
  bytes: made?.bytes ?? null,
  sha256: made?.sha256 ?? null,
  content_type: made?.content_type ?? null,
  error: error === undefined ? null : { code: error.code, message: error.message },
  blocked_by: blockedBy ?? null,
  line: step.entry.at.line,
})

const ACTION_WORDS: readonly (readonly [RowAction['do'], string])[] = [
  ['up_to_date', 'up to date'],
  ['download', 'to download'],
  ['create', 'to create'],
  ['unconfirmed', 'unconfirmed'],
  ['conflict', 'with a conflicting file'],
  ['blocked', 'blocked'],
  ['skip', 'skipped'],
]

/** `5 runs: 3 up to date, 2 to create. Estimate: 3 credits` */
export function planLine({ globals }: Context, plan: Plan, prices: Prices): string {
  const { counts } = plan
  const parts = ACTION_WORDS.filter(([action]) => counts[action] > 0).map(
    ([action, words]) => `${counts[action]} ${words}`,
  )
  const runs = [plural(counts.total, 'run'), parts.join(', ')].filter(Boolean).join(': ')
  return `${runs}${estimateNote(sumPlan(plan, prices), globals)}`
}

export const pricedRun = ({ entry: { kind, input }, model }: PlanStep) => ({ model, kind, input })

/** Sums the estimates of all runs that a plan may create. */
export const sumPlan = ({ steps }: Plan, prices: Prices): CostEstimate =>
  prices.sum(steps.filter(({ action }) => action.do === 'create').map(pricedRun))

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
