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
import { addTo, isObject } from '../../protocol/parse.js'
import { dearestInput, type EstimateSum, millionthsOf, readPrice, sumOf } from '../../protocol/price.js'
import { shortened } from '../../protocol/text.js'
import type { ConfigFile } from '../settings/config-file.js'
import type { Settings } from '../settings/settings.js'
import { SETTINGS } from '../settings/table.js'
import type { Terminal } from '../terminal/output.js'
import { builtInDocument, type KnownModels } from './known-models.js'

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
  readonly currency: string
}

type ListedModels = Pick<KnownModels, 'find' | 'listedAtMs'>

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
    // Sums and limits have one currency: that of the profile if a cost has it, else that of the first cost.
    const costs = models
      .list()
      .flatMap(({ document: { cost } }) => (cost === undefined || cost === 'unknown' ? [] : [cost.currency]))
    const currency = costs.find((each) => each === setting) ?? costs[0] ?? CREDITS
    return new Prices(models, currency, 'local')
  }
  const { prices = {} } = await ctx.profile()
  const problems: string[] = []
  const read = readPrices(prices, (name) => models.find(name)?.input, problems)
  if (problems.length > 0)
    ctx.out.warn(`${ctx.config.path}: ${problems.join('; ')}. The model is treated as one without a price.`)
  return new Prices(models, setting ?? CREDITS, read)
}

export class Prices {
  /** Currency of all estimates, of the prices in the config file, and of the limits. */
  readonly currency: string
  readonly #models: ListedModels
  /** Those of the profile, by name of the model. */
  readonly #own: PricesOfProfile | 'local'

  constructor(models: ListedModels, currency: string, own: PricesOfProfile | 'local') {
    this.#models = models
    this.currency = currency
    this.#own = own
  }

  /** Returns the price of a model, and its currency. */
  find({ name, price, cost }: ModelDocument): FoundPrice | undefined {
    const own = this.#own
    if (own === 'local') {
      if (cost === 'unknown') return undefined
      const { currency, ...costs } = cost ?? { run: 0, factors: {}, currency: this.currency }
      return { price: costs, currency }
    }
    if (!own.has(name)) return price && { price, currency: CREDITS }
    const set = own.get(name)
    return set && { price: set, currency: this.currency }
  }

  /** Returns undefined if the model has no price in the currency of the estimates. */
  estimate({ model, kind = 'image', input }: PricedRun): RunEstimate | undefined {
    if (model === undefined) return undefined
    const known = this.#models.find(model)
    // A model that the local service does not have is not known to be free.
    if (known === undefined && this.#own === 'local') return undefined
    // The built-in schemas have no defaults, so that the kind does not matter.
    const document = known ?? builtInDocument(kind, model)
    const { price, currency } = this.find(document) ?? {}
    // Sums and limits have one currency.
    if (price === undefined || currency !== this.currency) return undefined
    return { millionths: millionthsOf({ ...document, price }, input ?? dearestInput(price)) ?? 0, currency }
  }

  /** Says why a model has no estimate. A service whose list was never read may have its price. */
  noEstimateText(model: string): string {
    const isListed = this.#own === 'local' || this.#own.has(model) || this.#models.listedAtMs !== undefined
    return isListed || this.#models.find(model) !== undefined || this.currency !== CREDITS
      ? `No estimate: ${model} has no price${inCurrency(this.currency)}.`
      : `No estimate: the price of ${model} is not known here. \`rushes models --refresh\` asks the service for it.`
  }

  /** Sums the estimates of runs. `count`: of each of them. */
  sum(runs: Iterable<PricedRun>, count = 1): CostEstimate {
    const all: (number | undefined)[] = []
    const byModel = new Map<string, (number | undefined)[]>()
    for (const run of runs) {
      const millionths = this.estimate(run)?.millionths
      for (let each = 0; each < count; each++) {
        all.push(millionths)
        if (run.model !== undefined) addTo(byModel, run.model, millionths)
      }
    }
    const sum = (estimates: readonly (number | undefined)[]) => ({
      runs: estimates.length,
      ...sumOf(estimates),
    })
    return {
      ...sum(all),
      currency: this.currency,
      byModel: new Map([...byModel].map(([model, each]) => [model, sum(each)])),
    }
  }
}

/** Undefined: not valid. */
type PricesOfProfile = ReadonlyMap<string, Price | undefined>

const PRICE_KEYS: readonly string[] = ['run', 'factors']

/** Reads `prices` of a profile, and adds its problems. `schemaOf`: of the input of a model, if it is known. */
export function readPrices(
  prices: unknown,
  schemaOf: (model: string) => ModelSchema | undefined,
  problems: string[],
): PricesOfProfile {
  if (!isObject(prices)) problems.push('prices must be an object by name of the model')
  return new Map(
    Object.entries(isObject(prices) ? prices : {}).map(([name, value]) => {
      if (!isModelName(name)) {
        problems.push(`"${shortened(name, 80)}" is not a model name (provider/name)`)
        return [name, undefined]
      }
      const before = problems.length
      const problem = (path: readonly (string | number)[], message: string) =>
        void problems.push(`prices.${[name, ...path.slice(1)].join('.')} ${message}`)
      const price = readPrice(value, schemaOf(name), problem)
      for (const key of isObject(value) ? Object.keys(value) : [])
        if (!PRICE_KEYS.includes(key))
          problem(['price', key], `is not a key of a price: ${PRICE_KEYS.join(', ')}`)
      return [name, problems.length === before ? price : undefined]
    }),
  )
}

/** Checks the value of the setting `prices`. Returns all problems. `models`: of the settings, by kind. */
export function priceProblems(
  prices: unknown,
  known: KnownModels,
  models: Readonly<Partial<Record<Kind, string>>>,
): readonly string[] {
  const problems: string[] = []
  const builtIn = (name: string) => {
    const kind = KINDS.find((each) => models[each] === name)
    return kind && builtInDocument(kind)
  }
  readPrices(prices, (name) => (known.find(name) ?? builtIn(name))?.input, problems)
  return problems
}

/** ` in USD`, for messages about prices that only the config can have; empty for credits. */
export const inCurrency = (currency: string): string => (currency === CREDITS ? '' : ` in ${currency}`)
