/**
 * Estimates of what runs will cost: prices of the config file, then those of the models' documents. With `--local`, the
 * service charges nothing, and the provider of a model charges the `cost` of its document.
 */
import type { RunEstimate } from '../../journal/index.js'
import {
  isModelName,
  KINDS,
  type Kind,
  type ModelDocument,
  type ModelInput,
  type ModelSchema,
  type Price,
} from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import { dearestInput, type EstimateSum, millionthsOf, sumOf } from '../../protocol/price.js'
import { readPrice } from '../../protocol/read-price.js'
import { printable, shortened } from '../../protocol/text.js'
import type { ConfigFile } from '../settings/config-file.js'
import type { Settings } from '../settings/settings.js'
import { SETTINGS } from '../settings/table.js'
import type { Terminal } from '../terminal/output.js'
import { builtInDocument, type KnownModel, type KnownModels } from './known-models.js'

/** A document, or a model whose input is not known. */
interface PricedModel {
  readonly name: string
  readonly price?: ModelDocument['price']
  readonly cost?: ModelDocument['cost']
  readonly input?: ModelSchema
}

interface PricedRun {
  /** Undefined: the run has no price. */
  readonly model: string | undefined
  readonly kind: Kind | undefined
  /** Undefined if it is not known, for the highest estimate. */
  readonly input: ModelInput | undefined
}

interface ModelEstimate extends EstimateSum {
  readonly runs: number
}

/** The estimate of several runs. */
export interface CostEstimate extends ModelEstimate {
  readonly currency: string
  readonly byModel: ReadonlyMap<string, ModelEstimate>
}

interface FoundPrice {
  readonly price: Price
  readonly source: 'config' | 'document' | 'local' | 'cost'
  readonly currency: string
}

interface ModelFinder {
  find(name: string): ModelDocument | undefined
}

/** Unit of the prices in documents. */
const CREDITS = SETTINGS.currency.default

/** The parts of a command's context that are used for prices. */
export interface PriceSources extends Settings, Pick<Terminal, 'out'> {
  readonly config: ConfigFile
  models(): Promise<KnownModels>
}

/** Reads the prices for the service of the command. Warns of prices in the config file that are not valid. */
export async function openPrices(ctx: PriceSources): Promise<Prices> {
  const models = await ctx.models()
  const setting = await ctx.setting('currency')
  if (ctx.globals.local) {
    const currency = currencyOfCosts(models.list(), setting)
    return new Prices({ currency, isLocal: true, models })
  }
  const { prices } = await ctx.profile()
  const warn = (problems: string) =>
    ctx.out.warn(`${ctx.config.path}: ${problems}. The model is treated as one without a price.`)
  return new Prices({ currency: setting ?? CREDITS, models, prices, warn })
}

/** Sums and limits have one currency: that of the profile if a cost has it, else that of the first cost. */
function currencyOfCosts(known: readonly KnownModel[], setting: string | undefined): string {
  const costs = known.map(({ document }) => document.cost)
  const currencies = costs.flatMap((cost) =>
    cost === undefined || cost === 'unknown' ? [] : [cost.currency],
  )
  return currencies.find((each) => each === setting) ?? currencies[0] ?? CREDITS
}

interface PricesOptions {
  readonly currency: string
  readonly isLocal?: boolean
  readonly models?: ModelFinder
  /** `prices` of the profile, by name of the model. */
  readonly prices?: unknown
  warn?(problems: string): void
}

export class Prices {
  /** Currency of all estimates, of the prices in the config file, and of the limits. */
  readonly currency: string
  readonly #options: PricesOptions
  readonly #ofConfig = new Map<string, { schema: ModelSchema | undefined; price: Price | undefined }>()

  constructor(options: PricesOptions) {
    this.currency = options.currency
    this.#options = options
  }

  /** Returns the price of a model, and where it comes from. */
  find(model: PricedModel): FoundPrice | undefined {
    const { isLocal, prices } = this.#options
    if (isLocal === true) return this.#costOf(model)
    const isSet = isObject(prices) ? Object.hasOwn(prices, model.name) : prices != null
    if (!isSet) return model.price && { price: model.price, source: 'document', currency: CREDITS }
    const price = this.#configured(model)
    return price && { price, source: 'config', currency: this.currency }
  }

  /** Returns undefined if the model has no price in the currency of the estimates. */
  estimate({ model, kind, input }: PricedRun): RunEstimate | undefined {
    if (model === undefined) return undefined
    const known = this.#options.models?.find(model)
    // A model that the local service does not have is not known to be free.
    if (known === undefined && this.#options.isLocal === true) return undefined
    const document = known ?? (kind && builtInDocument(kind, model))
    const found = this.find(document ?? { name: model })
    // Sums and limits have one currency.
    if (found?.currency !== this.currency) return undefined
    const { price, currency } = found
    // The built-in schemas have no defaults, so that the kind does not matter.
    const priced = { ...(document ?? builtInDocument('image')), price }
    return { millionths: millionthsOf(priced, input ?? dearestInput(price)) ?? 0, currency }
  }

  /** Sums the estimates of runs. `count`: of each of them. */
  sum(runs: Iterable<PricedRun>, count = 1): CostEstimate {
    const byModel = new Map<string | undefined, (number | undefined)[]>()
    for (const run of runs) {
      const millionths = this.estimate(run)?.millionths
      const ofModel = byModel.get(run.model) ?? []
      for (let each = 0; each < count; each++) ofModel.push(millionths)
      byModel.set(run.model, ofModel)
    }
    const sum = (estimates: (number | undefined)[]) => ({ runs: estimates.length, ...sumOf(estimates) })
    return {
      ...sum([...byModel.values()].flat()),
      currency: this.currency,
      byModel: new Map(
        [...byModel].flatMap(([model, each]) => (model === undefined ? [] : [[model, sum(each)] as const])),
      ),
    }
  }

  /** Whether the estimates of the model come from its document. */
  isOfDocument(model: string): boolean {
    const document = this.#options.models?.find(model)
    return document !== undefined && this.find(document)?.source === 'document'
  }

  /** The price of a run with `--local`. */
  #costOf({ cost }: PricedModel): FoundPrice | undefined {
    if (cost === 'unknown') return undefined
    if (cost === undefined)
      return { price: { run: 0, factors: {} }, source: 'local', currency: this.currency }
    const { currency, ...price } = cost
    return { price, source: 'cost', currency }
  }

  #configured({ name, input: schema }: PricedModel): Price | undefined {
    const { prices, warn = () => {} } = this.#options
    const known = this.#ofConfig.get(name)
    // With its document, the price is read with another schema.
    if (known !== undefined && known.schema === schema) return known.price
    const problems: string[] = []
    const price = isObject(prices)
      ? readConfigPrice(name, prices[name], schema, (each) => problems.push(each))
      : void problems.push('prices must be an object by name of the model')
    if (problems.length > 0) warn(problems.join('; '))
    this.#ofConfig.set(name, { schema, price })
    return price
  }
}

const PRICE_KEYS: readonly string[] = ['run', 'factors']

/**
 * Reads the price of a model in the config file. `schema`: of its input; undefined if it is not known. Returns
 * undefined after the report of a problem.
 */
function readConfigPrice(
  name: string,
  value: unknown,
  schema: ModelSchema | undefined,
  report: (problem: string) => void,
): Price | undefined {
  let isValid = true
  const problem = (path: readonly (string | number)[], message: string) => {
    isValid = false
    report(printable(`prices.${[name, ...path.slice(1)].join('.')} ${message}`))
  }
  const price = readPrice(value, schema, problem)
  for (const key of isObject(value) ? Object.keys(value) : [])
    if (!PRICE_KEYS.includes(key))
      problem(['price', key], `is not a key of a price: ${PRICE_KEYS.join(', ')}`)
  return isValid ? price : undefined
}

/** Checks the value of the setting `prices`. Returns all problems. `models`: of the settings, by kind. */
export function priceProblems(
  prices: Readonly<Record<string, unknown>>,
  known: ModelFinder,
  models: Readonly<Partial<Record<Kind, string>>>,
): readonly string[] {
  const schemaOf = (name: string) => {
    const kind = KINDS.find((each) => models[each] === name)
    return known.find(name)?.input ?? (kind && builtInDocument(kind).input)
  }
  const problems: string[] = []
  for (const [name, price] of Object.entries(prices))
    if (isModelName(name)) readConfigPrice(name, price, schemaOf(name), (each) => problems.push(each))
    else problems.push(`"${shortened(printable(name), 80)}" is not a model name (provider/name)`)
  return problems
}

/** ` in USD`, for messages about prices that only the config can have; empty for credits. */
export const inCurrency = (currency: string): string => (currency === CREDITS ? '' : ` in ${currency}`)
