/**
 * What a command, or a session of `rushes mcp`, may create: the limits of its estimates, `--max-cost` and
 * `maxCostPerDay`, and the number of runs of a session.
 */
import { EXIT, type RushesError, usageError } from '../../errors.js'
import type { DayLimit, Journal } from '../../journal/index.js'
import { amountText, parseAmount } from '../../protocol/price.js'
import { DAY_MS } from '../../protocol/units.js'
import { plural } from '../terminal/format.js'
import type { Terminal } from '../terminal/output.js'
import type { KnownModels } from './known-models.js'
import { type CostEstimate, inCurrency, openPrices, type PriceSources, type Prices } from './prices.js'

interface LimitSources extends PriceSources, Pick<Terminal, 'clock'> {
  journal(): Promise<Journal>
}

interface LimitOptions {
  /** Value of `--max-cost`. */
  readonly flag?: string | undefined
  /** Number of runs of a session. */
  readonly maxRuns?: number | undefined
}

/** Throws `usage` for a limit that is not an amount. */
export async function openCostLimit(
  ctx: LimitSources,
  { flag, maxRuns }: LimitOptions = {},
): Promise<CostLimit> {
  const amountOf = (text: string | undefined) => (text === undefined ? undefined : parseAmount(text))
  const maxCost = amountOf(await ctx.setting('maxCost', flag))
  const millionths = amountOf(await ctx.setting('maxCostPerDay'))
  const prices = await openPrices(ctx)
  const perDay = millionths === undefined ? undefined : { millionths, currency: prices.currency }
  return new CostLimit(ctx, await ctx.models(), prices, maxCost, perDay, maxRuns)
}

export class CostLimit {
  readonly prices: Prices
  /** Millionths of the currency. Undefined: no limit. */
  readonly maxCost: number | undefined
  /** For the intents of the creates: the journal checks it again, directly before each create. */
  readonly perDay: DayLimit | undefined
  readonly maxRuns: number | undefined
  readonly #ctx: LimitSources
  readonly #models: KnownModels
  #runs = 0
  #millionths = 0

  constructor(
    ctx: LimitSources,
    models: KnownModels,
    prices: Prices,
    maxCost: number | undefined,
    perDay: DayLimit | undefined,
    maxRuns: number | undefined,
  ) {
    this.#ctx = ctx
    this.#models = models
    this.prices = prices
    this.maxCost = maxCost
    this.perDay = perDay
    this.maxRuns = maxRuns
  }

  /**
   * Throws `usage` if the runs pass a limit, or if one has no price. First asks the service for the prices that it has now.
   * `estimate` is called again after that.
   */
  async check(estimate: () => CostEstimate): Promise<CostEstimate> {
    const before = estimate()
    this.#checkRuns(before.runs)
    const { maxCost, perDay } = this
    if (before.runs === 0 || (maxCost === undefined && perDay === undefined)) return before
    const outcome = await this.#models.ask()
    const sum = estimate()
    if (outcome.kind === 'failed') this.#refuseUnread(sum, outcome.error)
    this.#refuseUnpriced(sum)
    this.#checkMaxCost(sum)
    if (perDay !== undefined) (await this.#ctx.journal()).checkDay(perDay, sum.millionths)
    return sum
  }

  /** Checks the runs, and counts them. */
  async reserve(estimate: () => CostEstimate): Promise<CostEstimate> {
    const sum = await this.check(estimate)
    // Another call of the session may have reserved since.
    this.#checkRuns(sum.runs)
    this.#checkMaxCost(sum)
    this.#runs += sum.runs
    this.#millionths += sum.millionths
    return sum
  }

  /** Uncounts runs that were reserved and definitely not created. */
  giveBack({ runs, millionths }: Pick<CostEstimate, 'runs' | 'millionths'>): void {
    this.#runs -= runs
    this.#millionths -= millionths
  }

  /** Throws `usage` if the session may not create so many runs more. */
  #checkRuns(runs: number): void {
    const { maxRuns } = this
    if (maxRuns === undefined || this.#runs + runs <= maxRuns) return
    throw usageError(
      `This session may create ${plural(maxRuns, 'run')} in all; ${maxRuns - this.#runs} left. Nothing was sent.`,
      NEW_SESSION,
    )
  }

  /**
   * Throws `usage`, or the error of the key, if the service's prices could not be read and are needed. A kept list of them
   * counts for a day; without one, all prices must be known in another way.
   */
  #refuseUnread({ withoutPrice }: CostEstimate, error: RushesError): void {
    const { listedAtMs } = this.#models
    // The age is absolute, because the clock may go back.
    const isUsable =
      listedAtMs === undefined ? withoutPrice === 0 : Math.abs(this.#ctx.clock.now() - listedAtMs) < DAY_MS
    if (isUsable) return
    // The create would end with it too.
    if (error.exitCode === EXIT.key) throw error
    throw usageError(
      "The prices in the service's list of models could not be read, so the limit cannot be checked: " +
        `${error.message} Nothing was sent.`,
      'Run the command again. If that changes nothing, see why with `rushes models --refresh`, set a price (see ' +
        '`rushes config set --help`), or remove the limit.',
    )
  }

  #refuseUnpriced({ withoutPrice, byModel }: CostEstimate): void {
    if (withoutPrice === 0) return
    const unpriced = [...byModel].flatMap(([model, sum]) => (sum.withoutPrice > 0 ? [model] : []))
    const limit = this.maxCost === undefined ? 'maxCostPerDay' : '--max-cost'
    throw usageError(
      `${plural(withoutPrice, 'run has', 'runs have')} no price${inCurrency(this.prices.currency)} ` +
        `(${unpriced.join(', ')}), so ${limit} cannot be checked. Nothing was sent.`,
      'Set its price (see `rushes config set --help`; with --local, `cost` in its model file), or remove the limit ' +
        '(--max-cost, RUSHES_MAX_COST, `maxCost`, RUSHES_MAX_COST_PER_DAY or `maxCostPerDay`).',
    )
  }

  #checkMaxCost({ millionths, runs }: CostEstimate): void {
    const { maxCost, maxRuns } = this
    if (maxCost === undefined || this.#millionths + millionths <= maxCost) return
    const text = (amount: number) => amountText(amount, this.prices.currency)
    const allowed =
      this.#millionths === 0
        ? `--max-cost allows ${text(maxCost)}`
        : `only ${text(maxCost - this.#millionths)} of ${text(maxCost)} is left in this session`
    const change = 'the limit (--max-cost, RUSHES_MAX_COST or `maxCost`)'
    throw usageError(
      `The estimate is ${text(millionths)}, but ${allowed}. Nothing was sent.`,
      maxRuns !== undefined
        ? NEW_SESSION
        : runs === 1
          ? `Raise ${change}.`
          : `Create fewer runs, or raise ${change}.`,
    )
  }
}

const NEW_SESSION = 'Ask the user. A new session, or `rushes mcp` with a higher limit, allows more.'
