/**
 * Reads the documents of a service's models: a file, or the `*.yaml` and `*.yml` files of a folder. Every problem of
 * every file is reported in one error, before the service listens.
 */
import { readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { RushesError, usageError } from '../../errors.js'
import { describeReason } from '../../host/system-error.js'
import { writeJson } from '../../protocol/json.js'
import { documentJson, type ReportProblem, readModelDocument } from '../../protocol/model-document.js'
import type { ModelDocument } from '../../protocol/models.js'
import { listedValues } from '../../protocol/parameters.js'
import { isObject } from '../../protocol/parse.js'
import { amountText, inMillionths, UNIT } from '../../protocol/price.js'
import { readCost } from '../../protocol/read-price.js'
import { printable, shortened } from '../../protocol/text.js'
import {
  type EngineTypes,
  type ModelWithEngine,
  previewOf,
  unknownKey,
  withEngine,
} from './engine-settings.js'
import { problemsError, readDocuments, type SourceDocument, type SourceProblem } from './read-documents.js'
import { readTextFile } from './read-text-file.js'

export interface ReadModelsOptions {
  /** A YAML or JSON file, or a folder. */
  readonly path: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Undefined: engines are not read, for a node that renders nothing. */
  readonly types: EngineTypes | undefined
  /** False for `--local`, which charges nothing: prices need not be whole credits. Default: true. */
  readonly isCharged?: boolean | undefined
}

/** More than a service can show in one list. */
const MAX_MODELS = 1_000
const MAX_FILE_MIB = 4
/** Clients read no longer answer. */
const MAX_LIST_BYTES = 8 * 1_048_576
const MAX_CONCURRENCY = 64

/** Throws `usage` with all problems. Returns at least one model. */
export function readModels({ path, ...options }: ReadModelsOptions): readonly ModelWithEngine[] {
  const problems: SourceProblem[] = []
  const files = filesAt(path)
  const sources = files.flatMap((file) => {
    const text = readTextFile(file, MAX_FILE_MIB, (reason) =>
      problems.push({ file, line: 1, column: 1, message: `the file ${reason}` }),
    )
    return text === undefined ? [] : readDocuments(text, file, (problem) => problems.push(problem))
  })
  if (sources.length > MAX_MODELS)
    throw usageError(`${shownPath(path)} has ${sources.length} models; the limit is ${MAX_MODELS}.`)
  const described = sources.map((source) => ({ source, document: readOwnDocument(source) }))
  checkTogether(described.flatMap(({ source, document }) => (document ? [{ source, document }] : [])))
  const models = described.flatMap(({ source, document }) => readModel(source, document, options) ?? [])
  if (problems.length > 0) {
    const order = (one: SourceProblem, other: SourceProblem) =>
      files.indexOf(one.file) - files.indexOf(other.file) ||
      one.line - other.line ||
      one.column - other.column
    throw problemsError(`The models in ${shownPath(path)} have`, problems.toSorted(order))
  }
  const bytes = Buffer.byteLength(writeJson(models.map(({ document }) => documentJson(document))))
  if (bytes > MAX_LIST_BYTES)
    throw usageError(
      `The models in ${shownPath(path)} have ${Math.ceil(bytes / 1_048_576)} MiB together; the limit is 8 MiB.`,
    )
  return models
}

const shownPath = (path: string): string => shortened(printable(path), 200)

function filesAt(path: string): readonly string[] {
  try {
    if (!statSync(path).isDirectory()) return [path]
    const names = readdirSync(path).filter((name) => /\.ya?ml$/i.test(name) && !name.startsWith('.'))
    if (names.length > 0) return names.sort().map((name) => join(path, name))
  } catch (cause) {
    throw new RushesError('usage', `${shownPath(path)}: ${describeReason(cause)}.`, {
      cause,
      hint: 'Give a file or a folder with --models, or with `rushes config set local.models <path>`.',
    })
  }
  throw usageError(
    `The folder ${shownPath(path)} has no models.`,
    'A model is a file that ends with .yaml or .yml. To read a JSON file, name the file itself.',
  )
}

const PRICE_KEYS = ['run', 'factors']
const COST_KEYS = [...PRICE_KEYS, 'currency']
const KEYS = ['name', 'kind', 'description', 'engine', 'input', 'price', 'cost', 'concurrency', 'default']
/** Further keys of `rushes models <name> --json`, so that its output can be added again. */
const SHOWN_KEYS = ['price_source', 'currency']

/** Returns the document of a user's file, without its engine; undefined after the report of a problem. */
export function readOwnDocument({ value, report }: SourceDocument): ModelDocument | undefined {
  const document = readModelDocument(value, report)
  if (!isObject(value)) return undefined
  for (const name of Object.keys(value))
    if (![...KEYS, ...SHOWN_KEYS].includes(name)) report([name], unknownKey(name, KEYS, 'a model'))
  const { concurrency, description, price, cost } = value
  for (const name of isObject(price) ? Object.keys(price) : [])
    if (!PRICE_KEYS.includes(name)) report(['price', name], unknownKey(name, PRICE_KEYS, 'a price'))
  for (const name of isObject(cost) ? Object.keys(cost) : [])
    if (!COST_KEYS.includes(name)) report(['cost', name], unknownKey(name, COST_KEYS, 'a cost'))
  const isCount = Number.isInteger(concurrency) && Number(concurrency) >= 1
  if (concurrency !== undefined && !(isCount && Number(concurrency) <= MAX_CONCURRENCY))
    report(['concurrency'], `must be a whole number from 1 to ${MAX_CONCURRENCY}`)
  if (description !== undefined && typeof description !== 'string') report(['description'], 'must be text')
  const costs = cost === undefined || cost === null ? undefined : readCost(cost, document?.input, report)
  return (
    document && {
      ...document,
      ...(costs && { cost: costs }),
      input: { ...document.input, ...(typeof description === 'string' && { description }) },
    }
  )
}

/** Returns the model, or undefined after the report of a problem. */
function readModel(
  { value, file, report }: SourceDocument,
  described: ModelDocument | undefined,
  { env, types, isCharged = true }: Omit<ReadModelsOptions, 'path'>,
): ModelWithEngine | undefined {
  if (!isObject(value)) return undefined
  const { concurrency, engine } = value
  if (described !== undefined && isCharged) checkPrices(described, report)
  const model =
    types === undefined
      ? described && previewOf(described)
      : withEngine(described, {
          ...{ engine, types, env, folder: dirname(file) },
          report: (path, message) => report(['engine', ...path], message),
        })
  return model && { ...model, concurrency: concurrency as number | undefined }
}

/** Far more than any real model has. The second limit is on the work that finds them. */
const MAX_PRICES = 10_000
const MAX_PRODUCTS = 200_000
const MAX_CREDITS = 1_000_000_000n

interface PossiblePrice {
  /** In the `unit` of `checkPrices`, so that it is exact. */
  readonly amount: bigint
  /** The parameters with a factor, and their values. */
  readonly values: readonly (readonly [name: string, value: string])[]
}

/** Reports a price that is not always whole: the service charges whole credits, and the estimates of clients are exact. */
function checkPrices({ price, input: { properties, required } }: ModelDocument, report: ReportProblem): void {
  if (price === undefined) return
  let prices: readonly PossiblePrice[] = [{ amount: inMillionths(price.run), values: [] }]
  let unit = UNIT
  let products = 0
  for (const [name, byValue] of Object.entries(price.factors)) {
    const schema = properties[name]
    const listed = schema?.type === 'boolean' ? ['true', 'false'] : schema && listedValues(schema)
    const isSet = required.includes(name) || (schema !== undefined && 'default' in schema)
    const hasAll = isSet && listed?.every((value) => Object.hasOwn(byValue, value))
    const factors = new Map<number, string | undefined>(hasAll ? [] : [[1, undefined]])
    for (const [value, factor] of Object.entries(byValue))
      if (!factors.has(factor)) factors.set(factor, value)
    // Keyed by text: V8 hashes only the last digits of a bigint, which are often zeros here.
    const next = new Map<string, PossiblePrice>()
    for (const { amount, values } of prices)
      for (const [factor, value] of factors) {
        const product = amount * inMillionths(factor)
        const key = product.toString(32)
        if (!next.has(key))
          next.set(key, {
            amount: product,
            values: value === undefined ? values : [...values, [name, value]],
          })
        if (++products <= MAX_PRODUCTS && next.size <= MAX_PRICES) continue
        report(['price', 'factors'], `lead to more than ${MAX_PRICES} prices. Use fewer of them`)
        return
      }
    prices = [...next.values()]
    unit *= UNIT
  }
  const wrong = prices.find(({ amount }) => amount % unit !== 0n || amount > MAX_CREDITS * unit)
  if (wrong === undefined) return
  const { amount, values } = wrong
  const path = values.length === 0 ? ['run'] : ['factors', ...(values.at(-1) ?? [])]
  const shown = values
    .map((words) => words.map((word) => shortened(printable(word), 80)).join(' '))
    .join(', ')
  const text = amountText((amount * UNIT + unit - 1n) / unit, 'credits')
  const [fault, advice] =
    amount % unit === 0n
      ? ['too high', `at most ${MAX_CREDITS} credits`]
      : ['not whole', 'whole credits, for example 100 times as many']
  report(
    ['price', ...path],
    `leads to a price that is ${fault}: ${text}${shown && ` with ${shown}`}. Use ${advice}`,
  )
}

/** Reports names that are used twice, and further defaults of a kind. */
function checkTogether(
  models: readonly { readonly document: ModelDocument; readonly source: SourceDocument }[],
): void {
  for (const [index, { document, source }] of models.entries()) {
    const { name, kind } = document
    const earlier = models.slice(0, index)
    const twin = earlier.find((each) => each.document.name === name)
    if (twin !== undefined)
      source.report(['name'], `"${name}" is also the name of a model in ${printable(twin.source.file)}`)
    const first = earlier.find((each) => each.document.default && each.document.kind === kind)
    if (document.default && first !== undefined)
      source.report(
        ['default'],
        `is also set by ${first.document.name}: only one ${kind} model can be the default`,
      )
  }
}
