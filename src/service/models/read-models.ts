/**
 * Reads the documents of a service's models: a file, or the `*.yaml` and `*.yml` files of a folder. Every problem of
 * every file is reported in one error, before the service listens.
 */
import { readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { RushesError, usageError } from '../../errors.js'
import { describeReason } from '../../host/system-error.js'
import { InvalidText, readYaml } from '../../host/yaml.js'
import { type DocumentPath, type ReportProblem, readModelDocument } from '../../protocol/model-document.js'
import type { Cost, ModelDocument, ModelSchema } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import { creditsOf, dearestInput, readPrice } from '../../protocol/price.js'
import { printable, shortened } from '../../protocol/text.js'
import { readTextFile, unknownKey } from '../engines/settings.js'
import {
  chargesForRuns,
  type EngineTypes,
  type ModelWithEngine,
  previewOf,
  withEngine,
} from './model-with-engine.js'

export interface ReadModelsOptions {
  /** A YAML or JSON file, or a folder. */
  readonly path: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly types: EngineTypes
  /** False for a node that renders nothing: it reads which parameters an engine has, and reports none of its problems. */
  readonly readsEngines?: boolean
  /** False for `--local`, which charges nothing: prices are not rounded up to whole credits. Default: true. */
  readonly isCharged?: boolean | undefined
}

export interface SourceProblem {
  readonly file: string
  readonly message: string
}

export interface SourceDocument {
  readonly value: unknown
  /** Path of the file, as it is shown. */
  readonly file: string
  /** Reports a problem at a path of the document. */
  readonly report: ReportProblem
}

const MAX_FILE_MIB = 4
const MAX_CONCURRENCY = 64

/** Throws `usage` with all problems. Returns at least one model. */
export function readModels({ path, ...options }: ReadModelsOptions): readonly ModelWithEngine[] {
  const found: SourceProblem[] = []
  const sources = filesAt(path).flatMap((file) => {
    const text = readTextFile(file, MAX_FILE_MIB, (reason) =>
      found.push({ file, message: `the file ${reason}` }),
    )
    return text === undefined ? [] : readDocuments(text, file, (problem) => found.push(problem))
  })
  const described = sources.map((source) => ({ source, document: readOwnDocument(source) }))
  checkTogether(described.flatMap(({ source, document }) => (document ? [{ source, document }] : [])))
  const models = described.flatMap(({ source, document }) => readModel(source, document, options) ?? [])
  if (found.length > 0) throw problemsError(`The models in ${shownPath(path)} have`, found)
  return models
}

const shownPath = (path: string): string => shortened(path, 200)

/** Returns the paths of the documents in a folder. Throws the errors of the system. */
const documentsIn = (folder: string): readonly string[] =>
  readdirSync(folder)
    .filter((name) => /\.ya?ml$/i.test(name) && !name.startsWith('.'))
    .sort()
    .map((name) => join(folder, name))

function filesAt(path: string): readonly string[] {
  try {
    if (!statSync(path).isDirectory()) return [path]
    const files = documentsIn(path)
    if (files.length > 0) return files
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

const PRICE_KEYS = ['run', 'factors', 'round_up']
const COST_KEYS = ['run', 'factors', 'currency']
const KEYS = [
  ...['name', 'kind', 'description', 'engine', 'input', 'price', 'cost', 'concurrency', 'default'],
]
/** Further keys of `rushes models <name> --json`, so that its output can be added again. */
const SHOWN_KEYS = ['currency']

/** Returns the document of a user's file, without its engine; undefined after the report of a problem. */
export function readOwnDocument({ value, report }: SourceDocument): ModelDocument | undefined {
  const document = readModelDocument(value, report)
  if (!isObject(value)) return undefined
  const { concurrency, description } = value
  const checkKeys = (keys: readonly string[], owner: string, at?: string) => {
    const map = at === undefined ? value : value[at]
    for (const name of isObject(map) ? Object.keys(map) : [])
      if (!keys.includes(name) && (at !== undefined || !SHOWN_KEYS.includes(name)))
        report(at === undefined ? [name] : [at, name], unknownKey(name, keys, owner))
  }
  checkKeys(KEYS, 'a model')
  checkKeys(PRICE_KEYS, 'a price', 'price')
  checkKeys(COST_KEYS, 'a cost', 'cost')
  const cost = readCost(value, document?.input, report)
  const isCount = Number.isInteger(concurrency) && Number(concurrency) >= 1
  if (concurrency !== undefined && !(isCount && Number(concurrency) <= MAX_CONCURRENCY))
    report(['concurrency'], `must be a whole number from 1 to ${MAX_CONCURRENCY}`)
  if (description !== undefined && typeof description !== 'string') report(['description'], 'must be text')
  return (
    document && {
      ...document,
      ...(cost && { cost }),
      input: { ...document.input, ...(typeof description === 'string' && { description }) },
    }
  )
}

/**
 * Returns the cost of a document: the map `cost`, else `unknown` for an engine that charges. Undefined if its runs cost
 * nothing.
 */
function readCost(
  { cost, engine }: Readonly<Record<string, unknown>>,
  schema: ModelSchema | undefined,
  report: ReportProblem,
): Cost | 'unknown' | undefined {
  if (cost === undefined || cost === null) return chargesForRuns(engine) ? 'unknown' : undefined
  const price = readPrice(cost, schema, report, 'cost')
  const currency = isObject(cost) ? cost.currency : undefined
  const isCurrency = typeof currency === 'string' && /^[^\s\p{C}]{1,16}$/u.test(currency)
  if (!isCurrency) report(['cost', 'currency'], 'must be a currency, such as USD')
  return isCurrency && price !== undefined ? { ...price, currency } : 'unknown'
}

/** Returns the model, or undefined after the report of a problem. */
function readModel(
  { value, file, report }: SourceDocument,
  own: ModelDocument | undefined,
  { env, types, readsEngines = true, isCharged = true }: Omit<ReadModelsOptions, 'path'>,
): ModelWithEngine | undefined {
  if (!isObject(value)) return undefined
  const { concurrency, engine } = value
  const described = own && isCharged ? chargedInCredits(own, report) : own
  const read = withEngine(described, {
    ...{ engine, types, env, folder: dirname(file), named: namedIn(value) },
    allowsMissingKeys: !isCharged,
    report: (path, message) => readsEngines && report(['engine', ...path], message),
  })
  const preview = described && previewOf(read?.document ?? described, read?.engine)
  const model = readsEngines ? read : preview && { ...preview, problem: read?.problem }
  return model && { ...model, concurrency: concurrency as number | undefined }
}

/** Returns the parameters that a document names itself, in its input or its price. */
function namedIn({ input, price }: Readonly<Record<string, unknown>>): readonly string[] {
  const keysOf = (each: unknown): readonly string[] => (isObject(each) ? Object.keys(each) : [])
  const properties = isObject(input) && input.type === 'object' ? input.properties : input
  return [...keysOf(properties), ...(isObject(price) ? keysOf(price.factors) : [])]
}

const MAX_CREDITS = 1_000_000_000

/**
 * Returns the document with the price that the service charges, which is rounded up to whole credits, so that the estimates
 * of clients are exact. Reports a price that is too high.
 */
function chargedInCredits(document: ModelDocument, report: ReportProblem): ModelDocument {
  if (document.price === undefined) return document
  const price = { ...document.price, round_up: true }
  if (creditsOf(document, dearestInput(price)) > MAX_CREDITS)
    report(['price'], `leads to more than ${MAX_CREDITS} credits for a run`)
  return { ...document, price }
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

/** One or two screens. */
const MAX_SHOWN_PROBLEMS = 200

/** `has`: `The models in a.yaml have`. A single problem is one line, unless `end` is given. */
export function problemsError(has: string, problems: readonly SourceProblem[], end = ''): RushesError {
  const lines = problems.slice(0, MAX_SHOWN_PROBLEMS).map(problemText)
  const more = problems.length - lines.length
  const [only = ''] = lines
  if (problems.length === 1 && end === '') return usageError(only)
  return usageError(
    `${has} ${problems.length === 1 ? '1 problem' : `${problems.length} problems`}${end}.`,
    [...lines, ...(more > 0 ? [`and ${more} more`] : [])].join('\n'),
  )
}

const problemText = ({ file, message }: SourceProblem): string => `${printable(file)}: ${message}`

/**
 * Returns the documents of a file: one, a list of them, or several that are separated by `---`. `problem` gets the error of a
 * text that cannot be read.
 */
export function readDocuments(
  text: string,
  file: string,
  problem: (problem: SourceProblem) => void,
): readonly SourceDocument[] {
  const report = (message: string) => problem({ file, message })
  const values = valuesOf(text, report)
  return values.map((value, index) => ({
    ...{ value, file },
    report: (path, message) =>
      report(`${values.length > 1 ? `document ${index + 1}: ` : ''}${labelOf(path, message)}${message}`),
  }))
}

function valuesOf(text: string, report: (message: string) => void): readonly unknown[] {
  try {
    const values = readYaml(text).flatMap(({ value }) => value ?? [])
    if (values.length === 0) report('the file has no document')
    return values
  } catch (error) {
    if (!(error instanceof InvalidText)) throw error
    report(`line ${error.line}: ${error.message}`)
    return []
  }
}

/**
 * `input.steps: minimum ` for the path of a minimum. A message that begins with a quoted name names the last key itself.
 */
function labelOf(path: DocumentPath, message: string): string {
  const names = path.map((step) => (typeof step === 'number' ? `[${step}]` : shortened(step, 80)))
  const last = names.pop()
  if (last === undefined) return 'the document '
  const parent = names.filter((name) => name !== 'properties').join('.')
  return `${parent}${parent === '' ? '' : ': '}${message.startsWith('"') ? '' : `${last} `}`
}
