/**
 * Estimates of what runs will cost: prices of the config file, then those of the models' documents. With `--local`, the
 * service charges nothing, and the provider of a model charges the `cost` of its document.
 */
import { usageError } from '../../errors.js'
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
import {
  amountText,
  dearestInput,
  type EstimateSum,
  millionthsOf,
  parseAmount,
  sumOf,
} from '../../protocol/price.js'
import { readPrice } from '../../protocol/read-price.js'
import { printable, shortened } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import { SETTINGS } from '../settings/table.js'
import { plural } from '../terminal/format.js'
import { builtInDocument, type KnownModel } from './known-models.js'

export interface Prices {
  /** Currency of all estimates, of the prices in the config file, and of `--max-cost`. */
  readonly currency: string
  /** Returns the price of a model, and where it comes from. */
  find(model: PricedModel): FoundPrice | undefined
  /**
   * Asks the service for the prices that it gives these models now, before a limit of the cost is checked. Throws `usage`
   * if it does not answer and its list is older than a day: it may have changed a price.
   */
  renew(models: Iterable<string>): Promise<void>
  /**
   * Returns undefined if the model has no price in the currency of the estimates. `input`: undefined if it is not known,
   * for the highest estimate.
   */
  estimate(run: {
    model: string
    kind: Kind | undefined
    input: ModelInput | undefined
  }): RunEstimate | undefined
}

/** A document, or a model whose input is not known. */
interface PricedModel {
  readonly name: string
  readonly price?: ModelDocument['price']
  readonly cost?: ModelDocument['cost']
  readonly input?: ModelSchema
}

interface ModelFinder {
  find(name: string): ModelDocument | undefined
  renewListOf?(names: readonly string[]): Promise<number | undefined>
}

export interface FoundPrice {
  readonly price: Price
  readonly source: 'config' | 'document' | 'local' | 'cost'
  readonly currency: string
}

/** Unit of the prices in documents. */
const CREDITS = SETTINGS.currency.default

/** Reads the prices for the service of the command. Warns of prices in the config file that are not valid. */
export async function openPrices(ctx: Context): Promise<Prices> {
  const models = await ctx.models()
  const setting = await ctx.setting('currency')
  if (ctx.globals.local) {
    const currency = currencyOfCosts(models.list(), setting)
    return createPrices({ currency, isLocal: true, models })
  }
  const currency = setting ?? CREDITS
  const { prices } = await ctx.profile()
  const warn = (problems: string) =>
    ctx.out.warn(`${ctx.config.path}: ${problems}. The model is treated as one without a price.`)
  return createPrices({ currency, models, prices, warn })
}

interface PricesOptions {
  readonly currency: string
  readonly isLocal?: boolean
  readonly models?: ModelFinder
  /** `prices` of the profile, by name of the model. */
  readonly prices?: unknown
  warn?(problems: string): void
}

/** Sums and limits have one currency: that of the profile if a cost has it, else that of the first cost. */
function currencyOfCosts(known: readonly KnownModel[], setting: string | undefined): string {
  const costs = known.map(({ document }) => document.cost)
  const currencies = costs.flatMap((cost) =>
    cost === undefined || cost === 'unknown' ? [] : [cost.currency],
  )
  return currencies.find((each) => each === setting) ?? currencies[0] ?? CREDITS
}

/** The price of a run with `--local`. */
function costOf(cost: ModelDocument['cost'], currency: string): FoundPrice | undefined {
  if (cost === 'unknown') return undefined
  if (cost === undefined) return { price: { run: 0, factors: {} }, source: 'local', currency }
  const { currency: own, ...price } = cost
  return { price, source: 'cost', currency: own }
}

export function createPrices(options: PricesOptions): Prices {
  const { currency, isLocal, models, prices, warn = () => {} } = options
  const ofConfig = new Map<string, { schema?: ModelSchema | undefined; price: Price | undefined }>()
  const documents = new Map<string, ModelDocument>()

  /** Finds a document once: reading it takes a file. */
  function documentOf(name: string): ModelDocument | undefined {
    const document = documents.get(name) ?? models?.find(name)
    if (document !== undefined) documents.set(name, document)
    return document
  }

  function configured(name: string, schema: ModelSchema | undefined): Price | undefined {
    const problems: string[] = []
    const price = isObject(prices)
      ? readConfigPrice(name, prices[name], schema, (each) => problems.push(each))
      : void problems.push('prices must be an object by name of the model')
    if (problems.length > 0) warn(problems.join('; '))
    return price
  }

  function find(model: PricedModel): FoundPrice | undefined {
    if (isLocal === true) return costOf(model.cost, currency)
    const isSet = isObject(prices) ? Object.hasOwn(prices, model.name) : prices != null
    if (!isSet) return model.price && { price: model.price, source: 'document', currency: CREDITS }
    const [name, schema] = isObject(prices) ? [model.name, model.input] : ['']
    const known = ofConfig.get(name)
    // Without its document, the price is read with another schema.
    const isKnown = known !== undefined && known.schema === schema
    const price = isKnown ? known.price : configured(name, schema)
    ofConfig.set(name, { schema, price })
    return price && { price, source: 'config', currency }
  }

  return {
    currency,
    find,
    async renew(names) {
      const priced = [...new Set(names)].filter((name) => {
        const document = documentOf(name)
        return document !== undefined && find(document)?.source === 'document'
      })
      const askedAtMs = await models?.renewListOf?.(priced)
      documents.clear()
      if (askedAtMs !== undefined) throw oldPrices(askedAtMs)
    },
    estimate({ model, kind, input }) {
      const document = documentOf(model) ?? (kind && builtInDocument(kind, model))
      const found = find(document ?? { name: model })
      // Sums and limits have one currency.
      if (found?.currency !== currency) return undefined
      const { price } = found
      // The built-in schemas have no defaults, so that the kind does not matter.
      const priced = { ...(document ?? builtInDocument('image')), price }
      return { millionths: millionthsOf(priced, input ?? dearestInput(price)) ?? 0, currency }
    },
  }
}

const oldPrices = (askedAtMs: number) =>
  usageError(
    `The service's list of models could not be read since ${new Date(askedAtMs).toISOString().slice(0, 10)}, so its ` +
      'prices may have changed and --max-cost cannot be checked. Nothing was sent.',
    'Run `rushes models --refresh` to see why, set the price in the config, or remove the limit.',
  )

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

/** The sum of the estimates of runs with the same input. */
export const sumOfRuns = (estimate: RunEstimate | undefined, count: number): EstimateSum =>
  sumOf(Array.from({ length: count }, () => estimate?.millionths))

/** Returns the limit of `--max-cost`, in millionths; undefined if none is set. Throws `usage`. */
export async function maxCostOf(ctx: Context, flag?: string): Promise<number | undefined> {
  const text = await ctx.setting('maxCost', flag)
  return text === undefined ? undefined : parseAmount(text)
}

/** ` in USD`, for messages about prices that only the config can have; empty for credits. */
export const inCurrency = (currency: string): string => (currency === CREDITS ? '' : ` in ${currency}`)

/** Throws `usage` if the estimate is above the limit, or if a run has no price. `unpriced`: models without one, if known. */
export function checkMaxCost(
  sum: EstimateSum,
  limit: number | undefined,
  currency: string,
  unpriced: readonly string[] = [],
): void {
  if (limit === undefined) return
  const { millionths, withoutPrice } = sum
  const names = unpriced.length === 0 ? '' : ` (${unpriced.map(printable).join(', ')})`
  const which = `${inCurrency(currency)}${names}`
  if (withoutPrice > 0)
    throw usageError(
      `${plural(withoutPrice, 'run has', 'runs have')} no price${which}, so --max-cost cannot be checked. ` +
        'Nothing was sent.',
      'Set its price (see `rushes config set --help`; with --local, `cost` in its document), or remove the limit ' +
        '(--max-cost, RUSHES_MAX_COST or `maxCost`).',
    )
  if (millionths > limit)
    throw usageError(
      `The estimate is ${amountText(millionths, currency)}, but --max-cost allows ${amountText(limit, currency)}. ` +
        'Nothing was sent.',
      'Create fewer runs, or raise the limit (--max-cost, RUSHES_MAX_COST or `maxCost`).',
    )
}
