/**
 * Estimates of what runs will cost: prices of the config file, then those of the models' documents. The local service of
 * `--local` charges nothing.
 */
import { usageError } from '../../errors.js'
import type { RunEstimate } from '../../journal/index.js'
import { readPrice } from '../../protocol/model-document.js'
import type { Kind, ModelDocument, ModelInput, Price } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import { amountText, type EstimateSum, millionthsOf } from '../../protocol/price.js'
import { printable } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import { maxCost, SETTINGS } from '../settings/table.js'
import { plural } from '../terminal/format.js'
import { builtInDocument, type KnownModels } from './known-models.js'

export interface Prices {
  /** Currency of all estimates. */
  readonly currency: string
  /** Returns the price of a model, and where it comes from. */
  find(document: ModelDocument): FoundPrice | undefined
  /** Returns undefined if the model has no price. */
  estimate(run: { model: string; kind: Kind | undefined; input: ModelInput }): RunEstimate | undefined
}

interface FoundPrice {
  readonly price: Price
  readonly source: 'config' | 'document' | 'local'
}

/** Reads the prices for the service of the command. Warns of prices in the config file that are not valid. */
export async function openPrices(
  ctx: Pick<Context, 'profile' | 'setting' | 'globals' | 'models' | 'out' | 'config'>,
): Promise<Prices> {
  if (ctx.globals.local) return createPrices({ currency: 'credits', isLocal: true })
  const currency = (await ctx.setting('currency')) ?? SETTINGS.currency.default
  const models = await ctx.models()
  const { prices } = await ctx.profile()
  const warn = (problem: string) =>
    ctx.out.warn(`${ctx.config.path}: ${problem}. The model counts as without a price.`)
  return createPrices({ currency, models, prices, warn })
}

interface PricesOptions {
  readonly currency: string
  readonly isLocal?: boolean
  readonly models?: Pick<KnownModels, 'find'>
  /** `prices` of the profile, by name of the model. */
  readonly prices?: unknown
  warn?(problem: string): void
}

const FREE: FoundPrice = { price: { run: 0, factors: {} }, source: 'local' }

export function createPrices(options: PricesOptions): Prices {
  const { currency, isLocal, models, prices, warn = () => {} } = options
  const ofConfig = new Map<string, Price | undefined>()

  function configured(value: unknown, { name, input }: ModelDocument): Price | undefined {
    const problems: string[] = []
    // Without a document, the parameters of the model are not known.
    const schema = models?.find(name) === undefined ? undefined : input
    const price = readPrice(value, schema, (path, message) =>
      problems.push(printable(`prices.${[name, ...path.slice(1)].join('.')}: ${message}`)),
    )
    const [problem] = problems
    if (problem === undefined) return price
    warn(problem)
    return undefined
  }

  function find(document: ModelDocument): FoundPrice | undefined {
    const { name } = document
    if (isLocal === true) return FREE
    if (!isObject(prices) || !Object.hasOwn(prices, name))
      return document.price && { price: document.price, source: 'document' }
    if (!ofConfig.has(name)) ofConfig.set(name, configured(prices[name], document))
    const price = ofConfig.get(name)
    return price && { price, source: 'config' }
  }

  return {
    currency,
    find,
    estimate({ model, kind = 'image', input }) {
      const document = models?.find(model) ?? builtInDocument(kind, model)
      const found = find(document)
      if (found === undefined) return undefined
      return { millionths: millionthsOf({ input: document.input, price: found.price }, input) ?? 0, currency }
    },
  }
}

/** Returns the limit of `--max-cost`, in millionths; undefined if none is set. Throws `usage`. */
export async function maxCostOf(ctx: Pick<Context, 'setting'>, flag?: string): Promise<number | undefined> {
  const text = await ctx.setting('maxCost', flag)
  return text === undefined ? undefined : maxCost(text, flag === undefined ? 'maxCost' : '--max-cost')
}

/** Throws `usage` if the estimate is above the limit, or if a run has no price. */
export function checkMaxCost(sum: EstimateSum, limit: number | undefined, currency: string): void {
  if (limit === undefined) return
  const { millionths, withoutPrice } = sum
  if (withoutPrice > 0)
    throw usageError(
      `${plural(withoutPrice, 'run')} ${withoutPrice === 1 ? 'has' : 'have'} no price, so --max-cost cannot be checked. Nothing was sent.`,
      'Set the price in `prices` of the config file (`rushes help models`), or leave out --max-cost.',
    )
  if (millionths > limit)
    throw usageError(
      `The estimate is ${amountText(millionths, currency)}, but --max-cost allows ${amountText(limit, currency)}. Nothing was sent.`,
      '--dry-run shows the estimate. Create fewer runs, or raise --max-cost.',
    )
}
