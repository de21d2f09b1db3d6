/** Checks inputs against the model schemas. Errors list the allowed values and suggest the nearest one. */
import { writeJson } from './json.js'
import { sourceFormOf } from './media.js'
import { mediaOfParameter } from './media-parameters.js'
import {
  describeType,
  KINDS,
  type Kind,
  listedValues,
  type ModelInput,
  type ModelSchema,
  type ParameterSchema,
} from './models.js'
import { isObject } from './parse.js'
import { nearest, shortened } from './text.js'

export interface InputProblem {
  /** Name of the parameter: `aspect_ratio`, or `image_urls/3` for an entry of a list. Empty for the whole input. */
  readonly parameter: string
  /**
   * Description of the problem, without the name of the parameter: `must be one of 720p, 1080p (did you mean "720p"?)`.
   */
  readonly message: string
}

/** Returns a value as JSON for a message. Not `String(data)`, because an object may have its own `toString`. */
const shownValue = (data: unknown): string =>
  shortened(data === undefined ? 'undefined' : writeJson(data), 100)

/** A document may list 1,000 long values. */
const MAX_LISTED = 1_000

function notListed(allowed: readonly string[], data: unknown, { type }: ParameterSchema): string {
  const value = shownValue(data)
  const typed = value.replace(/^"|"$/g, '')
  const closest = nearest(typed, allowed)
  // Another number is not a misspelled one.
  const near = isNumber(closest) && isNumber(typed) && closest !== typed ? undefined : closest
  const suggestion = type === 'string' ? `"${near}"` : near
  // The right words in the wrong type.
  const types = allowed.includes(typed) ? `the ${type === 'string' ? type : 'number'}s ` : ''
  const listed = shortened(allowed.join(', '), MAX_LISTED)
  return `must be one of ${types}${listed}, not ${value}${near === undefined ? '' : ` (did you mean ${suggestion}?)`}`
}

const isNumber = (text = ''): boolean => /^-?\d+(\.\d+)?$/.test(text)

/**
 * Describes the problem of a parameter's value; undefined without one. For an entry of a list, see `inputProblems`. Checks
 * only the keywords of `ParameterSchema`: a document may come from a service, and its regular expressions are not run.
 */
export function valueProblem(schema: ParameterSchema, value: unknown): string | undefined {
  const listed = listedValues(schema)
  const isTyped = hasType(schema, value)
  if (listed !== undefined)
    return isTyped && listed.includes(String(value)) ? undefined : notListed(listed, value, schema)
  if (!isTyped || !isWithinBounds(schema, value))
    return `must be ${describeType(schema)}, not ${shownValue(value)}`
  if (schema.type === 'string') return lengthProblem(value as string, schema.maxLength)
  if (schema.type !== 'array') return undefined
  const { length } = value as readonly unknown[]
  return length <= (schema.maxItems ?? length) ? undefined : `takes at most ${schema.maxItems}, not ${length}`
}

function isWithinBounds(schema: ParameterSchema, value: unknown): boolean {
  if (schema.type !== 'integer' && schema.type !== 'number') return true
  const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = schema
  return (value as number) >= minimum && (value as number) <= maximum
}

/** JSON Schema counts code points. */
function lengthProblem(text: string, maxLength: number | undefined): string | undefined {
  if (maxLength === undefined || text.length <= maxLength) return undefined
  let length = 0
  for (const _ of text) length++
  return length <= maxLength ? undefined : `must have at most ${maxLength} characters, not ${length}`
}

function hasType({ type }: ParameterSchema, value: unknown): boolean {
  if (type === 'other') return true
  if (type === 'array') return Array.isArray(value)
  if (type === 'integer') return Number.isInteger(value) || typeof value === 'bigint'
  // `1e999` in JSON is parsed as Infinity.
  if (type === 'number') return typeof value === 'number' || typeof value === 'bigint'
  return typeof value === type
}

/** The message about a required parameter without a value. */
export const MISSING = 'is missing'

/** A check ends after this number of problems, unless its caller wants fewer: its work then has a bound. */
export const MAX_PROBLEMS = 100

/** Returns the first problems of an input: at most one for each parameter, and one for each entry of a list. */
export function inputProblems(
  schema: ModelSchema,
  input: ModelInput,
  maxProblems = MAX_PROBLEMS,
): readonly InputProblem[] {
  const problems: InputProblem[] = []
  for (const problem of eachProblem(schema, input)) {
    problems.push(problem)
    if (problems.length === maxProblems) break
  }
  return problems
}

function* eachProblem({ required, properties }: ModelSchema, input: ModelInput): Generator<InputProblem> {
  for (const name of required) if (!Object.hasOwn(input, name)) yield { parameter: name, message: MISSING }
  for (const [name, schema] of Object.entries(properties)) {
    const value = Object.hasOwn(input, name) ? input[name] : undefined
    if (value === undefined) continue
    // The limit of some providers is for URLs: a data: URL is uploaded.
    const isData = schema.type === 'string' && typeof value === 'string' && /^data:/i.test(value)
    const isFile = isData && mediaOfParameter(name, { ...schema }) !== undefined
    const message = isFile ? undefined : valueProblem(schema, value)
    if (message !== undefined) yield { parameter: name, message }
    else if (schema.type === 'array') yield* entryProblems(name, schema.items, value as readonly unknown[])
    else if (schema.type === 'other') {
      const path = pathIn(name, schema.json, value)
      if (path !== undefined) yield { parameter: name, message: onlyUrls(path) }
      else yield* fieldProblems(name, schema.json, value)
    }
  }
}

function* entryProblems(
  name: string,
  { enum: listed }: { readonly enum?: readonly string[] },
  entries: readonly unknown[],
): Generator<InputProblem> {
  const allowed = listed && new Set(listed)
  const schema: ParameterSchema = { type: 'string', description: '', ...(listed && { enum: listed }) }
  for (const [index, entry] of entries.entries()) {
    if (typeof entry === 'string' && (allowed === undefined || allowed.has(entry))) continue
    const message = valueProblem(schema, entry)
    if (message !== undefined) yield { parameter: `${name}/${index}`, message }
  }
}

/** Checks the media in the fields of an object, or of each object in a list. A document may name no fields. */
function* fieldProblems(parameter: string, schema: unknown, value: unknown): Generator<InputProblem> {
  const { items, properties } = isObject(schema) ? schema : {}
  if (Array.isArray(value))
    for (const [index, each] of value.entries()) yield* fieldProblems(`${parameter}/${index}`, items, each)
  if (!isObject(value)) return
  for (const [field, each] of Object.entries(value)) {
    const own = isObject(properties) && Object.hasOwn(properties, field) ? properties[field] : undefined
    const path = pathIn(field, own, each)
    if (path !== undefined) yield { parameter, message: `has the field "${field}", which ${onlyUrls(path)}` }
    yield* fieldProblems(parameter, own, each)
  }
}

/**
 * Returns a text in a field for media that is not a URL. Only the parameters of a model take files: inside of an object, a
 * path would be sent as it is, and paid.
 */
function pathIn(field: string, schema: unknown, value: unknown): string | undefined {
  const own = isObject(schema) ? schema : {}
  // Without a type, its name decides.
  const isText = own.type === undefined || (own.type === 'array' && own.items === undefined)
  if (mediaOfParameter(field, isText ? { ...own, type: 'string' } : own) === undefined) return undefined
  return [value].flat().find((each): each is string => typeof each === 'string' && !isUrlOrBlank(each))
}

/** The problem of an input whose model is not known: a path in a field that is for media by its name. */
export function pathProblem(input: ModelInput): string | undefined {
  const [problem] = fieldProblems('The input', undefined, input)
  return problem && `${problem.parameter} ${problem.message}`
}

const isUrlOrBlank = (text: string): boolean => ['url', 'data', 'blank'].includes(sourceFormOf(text))

const onlyUrls = (path: string): string => `takes an http(s) or data: URL, not ${shownValue(path)}`

/**
 * Returns the fields that the schema does not define. They are sent anyway; the caller warns, because a name may be
 * mistyped.
 */
export function unknownFields(
  { properties }: ModelSchema,
  input: ModelInput,
): readonly { name: string; nearest: string | undefined }[] {
  const known = Object.keys(properties)
  return Object.keys(input)
    .filter((name) => !known.includes(name))
    .map((name) => ({ name, nearest: nearest(name, known) }))
}

export const isKind = (text: string): text is Kind => (KINDS as readonly string[]).includes(text)
