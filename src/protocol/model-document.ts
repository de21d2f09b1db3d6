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
} from './models.js'
import { parameterJson, stringOrObject } from './parameters.js'
import { isObject } from './parse.js'
import { type DocumentPath, type ReportProblem, readPrice } from './read-price.js'
import { printable, shortened } from './text.js'
import { valueProblem } from './validate.js'

export const MAX_DOCUMENT_BYTES = 262_144
export const MAX_PROPERTIES = 64
/** Parameters that an engine may add, and that a document may remove. */
const OFFERED: readonly string[] = ['seed', 'steps', 'guidance', 'negative_prompt']
const MAX_NAME_CHARACTERS = 200
const MAX_VALUES = 1_000

export type { DocumentPath, ReportProblem } from './read-price.js'

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
  const { name, kind, input = {}, price, default: isDefault } = value
  if (!isUsableName(name)) problem(['name'], 'must be a model name of the form <provider>/<name>')
  const known = KINDS.find((each) => each === kind)
  if (known === undefined) problem(['kind'], `must be ${KINDS.join(' or ')}`)
  if (isDefault !== undefined && typeof isDefault !== 'boolean') problem(['default'], 'must be true or false')
  if (!isUsableName(name) || known === undefined) return undefined
  const schema = readInput(input, known, problem)
  const priced = price === undefined || price === null ? undefined : readPrice(price, schema, problem)
  if (!isValid || schema === undefined) return undefined
  return {
    name,
    kind: known,
    input: schema,
    ...(priced && { price: priced }),
    ...(isDefault === true && { default: true }),
  }
}

/** Returns the document as the service's list and `rushes models <name> --json` show it. */
export const documentJson = ({ name, kind, input, price, default: isDefault }: ModelDocument): Json => ({
  name,
  kind,
  input: schemaJson(input),
  ...(price && { price }),
  ...(isDefault && { default: true }),
})

export const schemaJson = (schema: ModelSchema): Json => ({
  ...schema,
  properties: Object.fromEntries(
    Object.entries(schema.properties).map(([name, each]) => [name, parameterJson(each)]),
  ),
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
    return new TextEncoder().encode(writeJson(value)).length
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

function readInput(input: unknown, kind: Kind, problem: ReportProblem): ModelSchema | undefined {
  if (!isObject(input)) {
    problem(['input'], 'must be a map')
    return undefined
  }
  const isSchema = input.type === 'object'
  const at: DocumentPath = isSchema ? ['input', 'properties'] : ['input']
  const { properties: own = {} } = isSchema ? input : { properties: input }
  if (!isObject(own)) {
    problem(at, 'must be a map')
    return undefined
  }
  if (!isSchema && isObject(own.properties) && typeof own.properties.type !== 'string') {
    problem(
      [...at, 'properties'],
      'needs "type: object" beside it. Without that, write its entries directly below "input"',
    )
    return undefined
  }
  const builtIn: ModelSchema = MODEL_INPUTS[kind]
  const properties = new Map<string, ParameterSchema>(isSchema ? [] : Object.entries(builtIn.properties))
  const required = new Set<string>(isSchema ? [] : builtIn.required)
  const { description = isSchema ? '' : builtIn.description } = isSchema ? input : {}
  for (const [name, schema] of Object.entries(own)) {
    const path = [...at, name]
    if (schema === false) {
      if (!isSchema && !properties.has(name) && !OFFERED.includes(name))
        problem(path, `is not a built-in property of ${kind} models`)
      properties.delete(name)
      required.delete(name)
    } else if (!isPropertyName(name))
      problem(path, `"${shortened(printable(name), 80)}" is not a property name`)
    else {
      const read = readProperty(schema, path, problem)
      if (read === undefined) continue
      properties.set(name, read)
      const isRequired = isObject(schema) ? schema.required : undefined
      if (isRequired === true) required.add(name)
      else if (isRequired === false) required.delete(name)
      else if (isRequired !== undefined && !Array.isArray(isRequired))
        problem([...path, 'required'], 'must be true or false')
    }
  }
  if (properties.size > MAX_PROPERTIES)
    problem(at, `has ${properties.size} properties; the limit is ${MAX_PROPERTIES}`)
  if (isSchema) {
    const { required: names = [] } = input
    if (!isListOf(names, 'string')) problem(['input', 'required'], 'must be a list of strings')
    else
      for (const [index, name] of names.entries()) {
        if (properties.has(name)) required.add(name)
        else
          problem(
            ['input', 'required', index],
            `"${shortened(printable(name), 80)}" is not among the properties`,
          )
      }
  }
  if ((properties.get('prompt')?.type ?? 'string') !== 'string')
    problem([...at, 'prompt'], 'must be a string')
  if ((properties.get('image_urls')?.type ?? 'array') !== 'array')
    problem([...at, 'image_urls'], 'must be a list of strings')
  return {
    type: 'object',
    title: kind,
    description: typeof description === 'string' ? description : '',
    required: [...required],
    properties: Object.fromEntries(properties),
  }
}

/** Not a name of `Object.prototype`: options of a command line are properties of a plain object. */
const isPropertyName = (name: string): boolean =>
  /^[A-Za-z_][\w.-]{0,63}$/.test(name) && !(name in Object.prototype)

function readProperty(
  schema: unknown,
  path: DocumentPath,
  problem: ReportProblem,
): ParameterSchema | undefined {
  if (!isObject(schema)) {
    if (schema === true) return { type: 'other', description: '', json: true }
    problem(path, 'must be a map')
    return undefined
  }
  // `required: true` is this program's short form; in JSON Schema, `required` is a list.
  const { required, ...others } = schema
  const json: Json = stringOrObject(Array.isArray(required) ? schema : others)
  const { type } = json
  if (typeof type === 'string' && !TYPES.includes(type)) {
    problem([...path, 'type'], `must be one of ${TYPES.join(', ')}`)
    return undefined
  }
  const description = typeof json.description === 'string' ? json.description : ''
  if (!isSimple(json)) return { type: 'other', description, json }
  let isValid = true
  const report: ReportProblem = (at, message) => {
    isValid = false
    problem([...path, ...at], message)
  }
  const read = { ...json, ...readItems(json), description } as unknown as ParameterSchema
  checkKeywords(json, report)
  if (!isValid) return undefined
  const { default: standard } = json
  const isOtherForm = read.type === 'string' && isObject(standard)
  const wrong =
    standard === undefined ? undefined : isOtherForm ? 'must be text' : valueProblem(read, standard)
  if (wrong !== undefined) report(['default'], wrong)
  return isValid ? read : undefined
}

const SIMPLE: readonly unknown[] = ['string', 'integer', 'number', 'boolean']
const TYPES = [...SIMPLE, 'array', 'object', 'null']

const isSimple = ({ type, items }: Json): boolean =>
  SIMPLE.includes(type) || (type === 'array' && isObject(items) && items.type === 'string')

/** Without a list of values that cannot be used: the rest of the document is still worth checking. */
function readItems({ items }: Json): object {
  if (!isObject(items) || items.enum === undefined) return {}
  const { enum: values, ...others } = items
  const isUsable =
    Array.isArray(values) &&
    values.length > 0 &&
    values.length <= MAX_VALUES &&
    values.every((value) => typeof value === 'string' && value !== '')
  return isUsable ? {} : { items: others }
}

const isNumeric = (value: unknown): value is number | bigint =>
  typeof value === 'bigint' || Number.isFinite(value)

/** Checks the keywords that are used. Other keywords are kept and ignored. */
function checkKeywords(
  { type, enum: values, minimum, maximum, maxLength, maxItems, media }: Json,
  report: ReportProblem,
) {
  if (media !== undefined && media !== false && !MEDIA_TYPES.some((each) => each === media))
    report(['media'], `must be ${MEDIA_TYPES.join(', ')} or false`)
  const isNumber = type === 'integer' || type === 'number'
  const fits = (value: unknown) =>
    isNumber
      ? isNumeric(value) && (type === 'number' || typeof value === 'bigint' || Number.isInteger(value))
      : typeof value === 'string' && value !== ''
  if (values !== undefined) {
    const isList = Array.isArray(values) && values.length > 0 && values.length <= MAX_VALUES
    const quotes = isList && type === 'string' ? ' (put numbers, true and false in quotes)' : ''
    if (!isList || !values.every(fits) || !(isNumber || type === 'string'))
      report(['enum'], `must be a list of 1 to ${MAX_VALUES} values of type ${String(type)}${quotes}`)
  }
  for (const [name, bound] of Object.entries({ minimum, maximum }))
    if (bound !== undefined && !isNumeric(bound)) report([name], 'must be a number')
  for (const [name, bound] of Object.entries({ maxLength, maxItems }))
    if (bound !== undefined && !(Number.isSafeInteger(bound) && (bound as number) >= 0))
      report([name], 'must be a whole number from 0')
  if (isNumeric(minimum) && isNumeric(maximum) && minimum > maximum)
    report(['minimum'], `${minimum} is greater than the maximum ${maximum}`)
}

const isListOf = (value: unknown, type: 'string'): value is readonly string[] =>
  Array.isArray(value) && value.every((each) => typeof each === type)
