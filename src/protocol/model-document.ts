/**
 * Reads a model's document from JSON or YAML. A document may come from a service and is not trusted: it has bounds, no
 * regular expression in it is used, and its texts are printed with `printable`. A property that is not a string, a
 * number, a boolean or a list of strings is kept as `other`.
 */
import { writeJson } from './json.js'
import { MEDIA_TYPES } from './media.js'
import {
  isModelName,
  KINDS,
  type Kind,
  MODEL_INPUTS,
  type ModelDocument,
  type ModelSchema,
  type ParameterSchema,
  parameterJson,
} from './models.js'
import { isObject } from './parse.js'
import { type DocumentPath, type ReportProblem, readPrice } from './price.js'
import { printable, shortened } from './text.js'
import { valueProblem } from './validate.js'

const MAX_DOCUMENT_BYTES = 262_144
export const MAX_PROPERTIES = 64
const MAX_NAME_CHARACTERS = 200
const MAX_VALUES = 1_000

export type { DocumentPath, ReportProblem } from './price.js'

type Json = Readonly<Record<string, unknown>>

/**
 * Returns the document, or undefined after the first report of a problem. Other keys (`engine`, `concurrency`) are
 * ignored. `input` is a JSON Schema of an object, or a map of properties that are added to the built-in ones of the
 * kind, where `false` takes one away and `required: true` requires one.
 */
export function readModelDocument(value: unknown, report: ReportProblem): ModelDocument | undefined {
  let isValid = true
  const problem: ReportProblem = (path, message) => {
    isValid = false
    report(path, message)
  }
  if (!isObject(value)) {
    problem([], 'is not a map')
    return undefined
  }
  if (sizeOf(value) > MAX_DOCUMENT_BYTES) {
    problem([], `is larger than ${MAX_DOCUMENT_BYTES / 1_024} KiB`)
    return undefined
  }
  const { name, input = {}, price, default: isDefault } = value
  const kind = KINDS.find((each) => each === value.kind)
  const isNamed = isUsableName(name)
  if (!isNamed) problem(['name'], 'must be a model name of the form <provider>/<name>')
  if (kind === undefined) problem(['kind'], `must be ${KINDS.join(' or ')}`)
  if (isDefault !== undefined && typeof isDefault !== 'boolean') problem(['default'], 'must be true or false')
  if (!isNamed || kind === undefined) return undefined
  const schema = readInput(input, kind, problem)
  const priced = price === undefined || price === null ? undefined : readPrice(price, schema, problem)
  if (!isValid || schema === undefined) return undefined
  return {
    name,
    kind,
    input: schema,
    ...(priced && { price: priced }),
    ...(isDefault === true && { default: true }),
  }
}

/** Returns the document as the service's list and `rushes models <name> --json` show it. */
export const documentJson = ({ name, kind, input, price, default: isDefault }: ModelDocument): Json => ({
  name,
  kind,
  input: {
    ...input,
    properties: Object.fromEntries(
      Object.entries(input.properties).map(([property, each]) => [property, parameterJson(each)]),
    ),
  },
  ...(price && { price }),
  ...(isDefault && { default: true }),
})

/** Whether a name is a model's, and safe to print. */
export const isUsableName = (name: unknown): name is string =>
  typeof name === 'string' &&
  name.length <= MAX_NAME_CHARACTERS &&
  isModelName(name) &&
  printable(name) === name

/** Infinity for a value that is nested too deeply to be written as JSON. */
function sizeOf(value: unknown): number {
  try {
    return Buffer.byteLength(writeJson(value))
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

const quoted = (name: string): string => `"${shortened(name, 80)}"`

function readInput(input: unknown, kind: Kind, problem: ReportProblem): ModelSchema | undefined {
  const isSchema = isObject(input) && input.type === 'object'
  const at: DocumentPath = isSchema ? ['input', 'properties'] : ['input']
  const own = isSchema ? (input.properties ?? {}) : input
  if (!isObject(own)) {
    problem(at, 'must be a map')
    return undefined
  }
  if (!isSchema && isObject(own.properties) && typeof own.properties.type !== 'string') {
    problem(at, 'needs "type: object" beside "properties"')
    return undefined
  }
  const builtIn: ModelSchema = MODEL_INPUTS[kind]
  const properties = new Map<string, ParameterSchema>(isSchema ? [] : Object.entries(builtIn.properties))
  const required = new Set<string>(isSchema ? [] : builtIn.required)
  for (const [name, schema] of Object.entries(own)) {
    const path = [...at, name]
    if (schema === false) {
      properties.delete(name)
      required.delete(name)
    } else if (!isPropertyName(name)) problem(path, `${quoted(name)} is not a property name`)
    else {
      const read = readProperty(schema, path, problem)
      if (read !== undefined) properties.set(name, read)
      const isRequired = isObject(schema) ? schema.required : undefined
      if (isRequired === true) required.add(name)
      else if (isRequired === false) required.delete(name)
      else if (isRequired !== undefined && !Array.isArray(isRequired))
        problem([...path, 'required'], 'must be true or false')
    }
  }
  if (properties.size > MAX_PROPERTIES)
    problem(at, `has ${properties.size} properties; the limit is ${MAX_PROPERTIES}`)
  const names = isSchema ? (input.required ?? []) : []
  if (!isTexts(names)) problem(['input', 'required'], 'must be a list of strings')
  else
    for (const [index, name] of names.entries()) {
      if (properties.has(name)) required.add(name)
      else problem(['input', 'required', index], `${quoted(name)} is not among the properties`)
    }
  for (const [name, type, words] of [
    ['prompt', 'string', 'must be a string'],
    ['image_urls', 'array', 'must be a list of strings'],
  ] as const)
    if ((properties.get(name)?.type ?? type) !== type) problem([...at, name], words)
  const description = isSchema ? input.description : builtIn.description
  return {
    type: 'object',
    title: kind,
    description: typeof description === 'string' ? description : '',
    required: [...required],
    properties: Object.fromEntries(properties),
  }
}

const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((each) => typeof each === 'string')

/** Not a name of `Object.prototype`: options of a command line are properties of a plain object. */
const isPropertyName = (name: string): boolean =>
  /^[A-Za-z_][\w.-]{0,63}$/.test(name) && !(name in Object.prototype)

function readProperty(
  schema: unknown,
  path: DocumentPath,
  problem: ReportProblem,
): ParameterSchema | undefined {
  if (schema === true) return { type: 'other', description: '', json: true }
  if (!isObject(schema)) {
    problem(path, 'must be a map')
    return undefined
  }
  // `required: true` is this program's short form; in JSON Schema, `required` is a list.
  const { required, ...others } = schema
  const json = Array.isArray(required) ? schema : others
  const description = typeof json.description === 'string' ? json.description : ''
  if (typeof json.type === 'string' && !TYPES.includes(json.type)) {
    problem([...path, 'type'], `must be one of ${TYPES.join(', ')}`)
    return undefined
  }
  if (!isSimple(json)) return { type: 'other', description, json }
  const problems = Object.entries(KEYWORD_PROBLEMS).flatMap(([keyword, problemOf]) => {
    const message = json[keyword] === undefined ? undefined : problemOf(json[keyword], json)
    return message === undefined ? [] : [[keyword, message] as const]
  })
  const read = { ...json, description } as unknown as ParameterSchema
  const wrong =
    problems.length > 0 || json.default === undefined ? undefined : valueProblem(read, json.default)
  if (wrong !== undefined) problems.push(['default', wrong])
  for (const [keyword, message] of problems) problem([...path, keyword], message)
  return problems.length === 0 ? read : undefined
}

const SIMPLE: readonly unknown[] = ['string', 'integer', 'number', 'boolean']
const TYPES = [...SIMPLE, 'array', 'object', 'null']

/** Whether a property can be a flag. */
const isSimple = ({ type, items }: Json): boolean =>
  type === 'array'
    ? isObject(items) && items.type === 'string' && (items.enum === undefined || isTextList(items.enum))
    : SIMPLE.includes(type)

const isList = (value: unknown): value is readonly unknown[] =>
  Array.isArray(value) && value.length > 0 && value.length <= MAX_VALUES

const isTextList = (value: unknown): boolean => isList(value) && isTexts(value) && !value.includes('')

const isNumeric = (value: unknown): value is number | bigint =>
  typeof value === 'bigint' || Number.isFinite(value)

const isWhole = (value: unknown): boolean => typeof value === 'bigint' || Number.isInteger(value)

const boundProblem = (bound: unknown): string | undefined =>
  isNumeric(bound) ? undefined : 'must be a number'

const countProblem = (count: unknown): string | undefined =>
  Number.isSafeInteger(count) && Number(count) >= 0 ? undefined : 'must be a whole number from 0'

/** The keywords that are used. Others are kept and ignored. */
const KEYWORD_PROBLEMS: Readonly<Record<string, (value: unknown, schema: Json) => string | undefined>> = {
  media: (value) =>
    value === false || MEDIA_TYPES.some((each) => each === value)
      ? undefined
      : `must be ${MEDIA_TYPES.join(', ')} or false`,
  enum(values, { type }) {
    const isNumber = type === 'integer' || type === 'number'
    const fits = isNumber
      ? isList(values) && values.every(type === 'integer' ? isWhole : isNumeric)
      : type === 'string' && isTextList(values)
    const quotes = type === 'string' ? ' (put numbers, true and false in quotes)' : ''
    return fits ? undefined : `must be a list of 1 to ${MAX_VALUES} values of type ${type}${quotes}`
  },
  minimum: (minimum, { maximum }) =>
    isNumeric(minimum) && isNumeric(maximum) && minimum > maximum
      ? `${minimum} is greater than the maximum ${maximum}`
      : boundProblem(minimum),
  maximum: boundProblem,
  maxLength: countProblem,
  maxItems: countProblem,
  default: (value, { type }) => (type === 'string' && isObject(value) ? 'must be text' : undefined),
}
