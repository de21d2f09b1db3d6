/**
 * What a session may create, because an agent in a loop must not use up an account's credits: a number of runs and, with
 * `--max-cost`, a sum of estimates.
 */
import { usageError } from '../../errors.js'
import { amountOf, amountText, type EstimateSum } from '../../protocol/price.js'
import { plural } from '../terminal/format.js'

interface Limits {
  readonly maxRuns: number
  /** Largest sum of estimates, in millionths. Undefined: no limit. */
  readonly maxCost: number | undefined
  readonly currency: string
}

/** Counts the creates of a job. */
export interface CreateAllowance {
  /** Counts creates. Throws `usage` like `check`. */
  take(runs: number, sum: EstimateSum): void
  /** Uncounts creates that the service definitely did not accept. */
  giveBack(runs: number, millionths: number): void
}

export interface Allowance extends CreateAllowance {
  readonly maxCost: number | undefined
  readonly currency: string
  /** Runs, and millionths if there is a limit. */
  readonly left: { readonly runs: number; readonly millionths: number | undefined }
  /** Throws `usage` if less is left, or if a run without a price meets `maxCost`. */
  check(runs: number, sum: EstimateSum): void
}

export function createAllowance({ maxRuns, maxCost, currency }: Limits): Allowance {
  const left = { runs: maxRuns, millionths: maxCost }

  function check(runs: number, { millionths, withoutPrice }: EstimateSum): void {
    const hint = 'Ask the user. A new session, or `rushes mcp` with a higher limit, allows more.'
    if (runs > left.runs)
      throw usageError(
        `This session may create ${plural(maxRuns, 'run')} in all; ${left.runs} left. Nothing was sent.`,
        hint,
      )
    if (runs === 0 || maxCost === undefined || left.millionths === undefined) return
    const rest = `${amountText(left.millionths, currency)} of ${amountText(maxCost, currency)} is left in this session`
    if (withoutPrice > 0)
      throw usageError(
        `${plural(withoutPrice, 'run')} without a price cannot be created, because of --max-cost: ${rest}. Nothing was sent.`,
        'Ask the user to set its price with `rushes config set prices` and start a new session, or one without --max-cost.',
      )
    if (millionths > left.millionths)
      throw usageError(
        `The estimate is ${amountText(millionths, currency)}, but only ${rest}. Nothing was sent.`,
        hint,
      )
  }

  function giveBack(runs: number, millionths: number): void {
    left.runs += runs
    if (left.millionths !== undefined) left.millionths += millionths
  }

  return {
    maxCost,
    currency,
    left,
    check,
    take(runs, sum) {
      check(runs, sum)
      giveBack(-runs, -sum.millionths)
    },
    giveBack,
  }
}

/** A share of the allowance for a batch, which reserves all that it may create before its first create. */
export function createShare(allowance: Allowance) {
  const { maxCost, currency } = allowance
  let part = allowance
  return {
    maxCost,
    take: (runs: number, sum: EstimateSum) => part.take(runs, sum),
    giveBack: (runs: number, millionths: number) => part.giveBack(runs, millionths),
    /** Throws `usage` like `check`. */
    reserve(runs: number, sum: EstimateSum): void {
      allowance.take(runs, sum)
      part = createAllowance({ maxRuns: runs, maxCost: maxCost && sum.millionths, currency })
    },
    /** Gives back the unused rest. */
    release(): void {
      if (part !== allowance) allowance.giveBack(part.left.runs, part.left.millionths ?? 0)
    },
  }
}

/** The rest of the allowance, for the answers of tools. */
export const leftJson = ({ left: { runs, millionths } }: Allowance) => ({
  left_in_session: runs,
  estimate_left_in_session: millionths === undefined ? null : amountOf(millionths),
})

/** `this session may create 19 more runs, for at most 4.6 USD` */
export function leftText({ left: { runs, millionths }, currency }: Allowance): string {
  const amount = millionths === undefined ? '' : `, for at most ${amountText(millionths, currency)}`
  return `this session may create ${plural(runs, 'more run')}${amount}`
}
