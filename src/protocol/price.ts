/**
 * Prices of runs by the documents of their models, and the check of a document's price. Amounts are whole numbers of
 * millionths, so that sums are exact.
 */
import {
  listedValues,
  type ModelDocument,
  type ModelInput,
  type ModelSchema,
  type ParameterSchema,
  type Price,
} from './models.js'
import { isObject } from './parse.js'
import { shortened } from './text.js'

/** Millionths of 1. */
const UNIT = 1_000_000n
const inMillionths = (amount: number): bigint => BigInt(Math.round(amount * Number(UNIT)))

/** Larger amounts count as this one: every limit refuses it, and a sum stays a whole number. */
const LARGEST = BigInt(Number.MAX_SAFE_INTEGER)
const bounded = (amount: bigint): number => Number(amount < LARGEST ? amount : LARGEST)

/** Whether the provider of a model's engine may charge for its runs. */
export const mayCost = ({ cost }: ModelDocument): boolean =>
  cost === 'unknown' || (cost !== undefined && cost.run > 0)

/** A document, or what the price of a run needs of it. */
interface Priced {
  readonly price?: Price | undefined
  readonly input: ModelSchema
}

/**
 * Returns the price of a run in millionths, rounded up: `run` times the factors of the values that are sent, or of the
 * defaults of the document. With `round_up`, it is whole. Undefined if the document has no price.
 */
export function millionthsOf(
  { price, input: { properties } }: Priced,
  input: ModelInput,
): number | undefined {
  if (price === undefined) return undefined
  let amount = inMillionths(price.run)
  let scale = 1n
  for (const [name, byValue] of Object.entries(price.factors)) {
    const standard = Object.hasOwn(properties, name) ? defaultOf(properties[name]) : undefined
    const value = Object.hasOwn(input, name) ? input[name] : standard
    const factor = factorOf(byValue, value)
    if (factor === 1) continue
    amount *= inMillionths(factor)
    scale *= UNIT
  }
  const unit = price.round_up ? scale * UNIT : scale
  return bounded(((amount + unit - 1n) / unit) * (unit / scale))
}

/** A map in place of a word, such as a size in pixels, may be the dearest value. It may also have its own `toString`. */
function factorOf(byValue: Readonly<Record<string, number>>, value: unknown): number {
  if (value === undefined || value === null || Array.isArray(value)) return 1
  if (typeof value === 'object')
    return Object.values(byValue).reduce((dearest, each) => Math.max(dearest, each), 1)
  return Object.hasOwn(byValue, String(value)) ? (byValue[String(value)] ?? 1) : 1
}

/** Returns the credits that the service charges for a run: its price, rounded up. 0 if the document has no price. */
export const creditsOf = ({ price, input: schema }: Priced, input: ModelInput): number =>
  amountOf(millionthsOf({ price: price && { ...price, round_up: true }, input: schema }, input) ?? 0)

/** Returns the values with the highest factors. Their price is the highest that a run can have. */
export const dearestInput = (price: Price, input?: ModelSchema): ModelInput => extremeInput(price, input, -1)

/** Returns the values with the lowest factors. */
export const cheapestInput = (price: Price, input?: ModelSchema): ModelInput => extremeInput(price, input, 1)

/** A value without a factor is null. If the schema is known and lists only values with one, there is none. */
const extremeInput = ({ factors }: Price, input: ModelSchema | undefined, sign: 1 | -1): ModelInput =>
  Object.fromEntries(
    Object.entries(factors).map(([name, byValue]) => {
      const schema = input?.properties[name]
      const isComplete = schema && listedValues(schema)?.every((value) => Object.hasOwn(byValue, value))
      const values: [string | null, number][] = Object.entries(byValue)
      if (isComplete !== true) values.push([null, 1])
      return [name, values.sort(([, a], [, b]) => sign * (a - b))[0]?.[0] ?? null]
    }),
  )

/** The sum of estimates, in millionths. */
export interface EstimateSum {
  readonly millionths: number
  /** Number of runs without a price, which are not in the sum. */
  readonly withoutPrice: number
}

export function sumOf(estimates: Iterable<number | undefined>): EstimateSum {
  let sum = 0n
  let withoutPrice = 0
  for (const each of estimates)
    if (each === undefined) withoutPrice++
    else sum += BigInt(each)
  return { millionths: bounded(sum), withoutPrice }
}

/** Formats an amount exactly, for example `0.4 USD`. */
export function amountText(millionths: number | bigint, currency: string): string {
  const isOneCredit = currency === 'credits' && BigInt(millionths) === UNIT
  return `${decimalText(millionths)} ${isOneCredit ? 'credit' : currency}`
}

/** Formats an amount exactly, without zeros at its end. */
export const decimalText = (millionths: number | bigint): string =>
  String(millionths)
    .padStart(7, '0')
    .replace(/\d{6}$/, '.$&')
    .replace(/\.?0+$/, '')

export const amountOf = (millionths: number): number => millionths / Number(UNIT)

/** Reads an amount with at most six decimals, such as `12.50`, in millionths. Undefined for other text. */
export function parseAmount(text: string): number | undefined {
  const [, whole, fraction = ''] = /^(\d{1,9})(?:\.(\d{1,6}))?$/.exec(text) ?? []
  return whole === undefined ? undefined : Number(whole) * Number(UNIT) + Number(fraction.padEnd(6, '0'))
}

const defaultOf = (schema: object | undefined): unknown =>
  schema !== undefined && 'default' in schema ? schema.default : undefined

/** Returns the defaults of a document's input: the values that the local service uses for parameters that are left out. */
export const defaultsOf = ({ properties }: ModelSchema): ModelInput =>
  Object.fromEntries(
    Object.entries(properties).flatMap(([name, schema]) => {
      const value = defaultOf(schema)
      return value === undefined ? [] : [[name, value]]
    }),
  )

/** Path of a value in the document: `['input', 'steps', 'minimum']`. */
export type DocumentPath = readonly (string | number)[]
export type ReportProblem = (path: DocumentPath, message: string) => void

/** Reads a price, and reports its problems. `schema`: of the input, if it is known. `key`: of the price in the document. */
export function readPrice(
  price: unknown,
  schema: ModelSchema | undefined,
  problem: ReportProblem,
  key = 'price',
): Price | undefined {
  const { run, factors = {}, round_up: isRounded } = isObject(price) ? price : {}
  if (!isAmount(run)) problem([key, 'run'], AMOUNT)
  if (!isObject(factors)) {
    problem([key, 'factors'], 'must be a map')
    return undefined
  }
  for (const [name, byValue] of Object.entries(factors)) {
    const path = [key, 'factors', name]
    const parameter = schema && Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined
    const type =
      parameter?.type === 'other' && isObject(parameter.json) ? parameter.json.type : parameter?.type
    if (schema !== undefined && parameter === undefined) problem(path, 'is not a property of the input')
    else if (type === 'array' || type === 'object')
      problem(path, 'is a list or a map: only text, numbers and booleans can have factors')
    else if (!isObject(byValue)) problem(path, 'must be a map from a value to its factor')
    else checkFactors(byValue, parameter, (value, message) => problem([...path, value], message))
  }
  return isAmount(run)
    ? { run, factors: factors as Price['factors'], ...(isRounded === true && { round_up: true }) }
    : undefined
}

const MAX_LISTED_CHARACTERS = 1_000

function checkFactors(
  byValue: Readonly<Record<string, unknown>>,
  parameter: ParameterSchema | undefined,
  report: (value: string, message: string) => void,
): void {
  const listed = parameter?.type === 'boolean' ? ['true', 'false'] : parameter && listedValues(parameter)
  const isNumber = parameter?.type === 'integer' || parameter?.type === 'number'
  // Prepared once: a document can have thousands of factors for a thousand values.
  const allowed = listed && new Set(listed)
  const possible =
    listed === undefined
      ? 'a number in its shortest form'
      : `one of ${shortened(listed.join(', '), MAX_LISTED_CHARACTERS)}`
  for (const [value, factor] of Object.entries(byValue)) {
    const isPossible = allowed?.has(value) ?? (!isNumber || String(Number(value)) === value)
    if (!isPossible) report(value, `"${shortened(value, 80)}" is not ${possible}`)
    else if (!isAmount(factor)) report(value, AMOUNT)
  }
}

const MAX_AMOUNT = 1e9
const AMOUNT = `must be a number from 0 to ${MAX_AMOUNT} with at most six decimals`

const isAmount = (value: unknown): value is number =>
  typeof value === 'number' && value >= 0 && value <= MAX_AMOUNT && Number(value.toFixed(6)) === value
