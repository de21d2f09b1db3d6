/** Reads the price of a model's document; a cost has the same form. */
import type { ModelSchema, ParameterSchema, Price } from './models.js'
import { listedValues } from './parameters.js'
import { isObject } from './parse.js'
import { printable, shortened } from './text.js'

/** Path of a value in the document: `['input', 'steps', 'minimum']`. */
export type DocumentPath = readonly (string | number)[]
export type ReportProblem = (path: DocumentPath, message: string) => void

type Json = Readonly<Record<string, unknown>>

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
  byValue: Json,
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
    if (!isPossible) report(value, `"${shortened(printable(value), 80)}" is not ${possible}`)
    else if (!isAmount(factor)) report(value, AMOUNT)
  }
}

const MAX_AMOUNT = 1e9
const AMOUNT = `must be a number from 0 to ${MAX_AMOUNT} with at most six decimals`

const isAmount = (value: unknown): value is number =>
  typeof value === 'number' && value >= 0 && value <= MAX_AMOUNT && Number(value.toFixed(6)) === value
