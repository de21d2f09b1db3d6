/** Parameters of the models: descriptions of their types, and conversion from text without loss of digits. */
import { integerOf } from './json.js'
import { KINDS, type Kind, MODEL_INPUTS, type ModelSchema, type ParameterSchema } from './models.js'
import { isObject } from './parse.js'

/** All parameters of both built-in schemas, in their order. */
export const PARAMETER_NAMES: readonly string[] = [
  ...new Set(KINDS.flatMap((kind) => Object.keys(MODEL_INPUTS[kind].properties))),
]

/** The built-in schema of a kind. */
export const builtInSchema = (kind: Kind): ModelSchema => MODEL_INPUTS[kind]

/** Returns the allowed values of a schema as text; undefined without a list. */
export const listedValues = (schema: ParameterSchema): readonly string[] | undefined =>
  'enum' in schema && schema.enum !== undefined ? schema.enum.map(String) : undefined

/** Describes the allowed values of a parameter, joined by `separator`. */
export function describeValues(schema: ParameterSchema, separator: string): string {
  if (schema.type === 'array') {
    const listed = schema.items.enum === undefined ? '' : `: ${schema.items.enum.join(separator)}`
    return `repeatable${schema.maxItems === undefined ? '' : `, at most ${schema.maxItems}`}${listed}`
  }
  return listedValues(schema)?.join(separator) ?? describeType(schema)
}

/** Describes the type of a parameter: `a whole number from 0 to 10`. */
export function describeType(schema: ParameterSchema): string {
  switch (schema.type) {
    case 'array':
      return 'a list of strings'
    case 'boolean':
      return 'true or false'
    case 'integer':
      return `a whole number${describeBounds(schema)}`
    case 'number':
      return `a number${describeBounds(schema)}`
    case 'string':
      return schema.maxLength === undefined ? 'text' : `text of at most ${schema.maxLength} characters`
    case 'other':
      return 'JSON'
  }
}

interface Bounds {
  readonly minimum?: number | bigint
  readonly maximum?: number | bigint
}

function describeBounds({ minimum, maximum }: Bounds): string {
  if (minimum === undefined) return maximum === undefined ? '' : ` up to ${maximum}`
  return maximum === undefined ? ` from ${minimum}` : ` from ${minimum} to ${maximum}`
}

const WHOLE_NUMBER = /^-?\d+$/
const NUMBER = /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i

/**
 * Converts the text of a flag or CSV cell to the type of the schema. Returns the text unchanged if it is invalid, or an
 * integer beyond 64 bits, which would lose digits: validation then reports it with the same message as an invalid value in
 * `--input`.
 */
export function valueOfText({ type }: ParameterSchema, text: string): string | number | bigint | boolean {
  if (type === 'boolean') return /^true$/i.test(text) ? true : /^false$/i.test(text) ? false : text
  if (type !== 'integer' && type !== 'number') return text
  if (WHOLE_NUMBER.test(text)) return integerOf(text) ?? text
  return type === 'number' && NUMBER.test(text) && Number.isFinite(Number(text)) ? Number(text) : text
}

/** Summary that replaces an image which was sent as a data: URL. */
export interface SentImage {
  readonly sha256: string
  readonly bytes: number
  readonly content_type: string
}

export const isSentImage = (value: unknown): value is SentImage =>
  isObject(value) &&
  typeof value.sha256 === 'string' &&
  typeof value.bytes === 'number' &&
  typeof value.content_type === 'string'

/**
 * Returns the path (names, and positions in lists) of the first number that a JSON parser may have changed; undefined
 * if none was.
 */
export function findInexact(value: unknown): readonly string[] | undefined {
  if (typeof value === 'number') return isUnchanged(value) ? undefined : []
  if (typeof value !== 'object' || value === null) return undefined
  for (const [name, each] of Object.entries(value)) {
    const found = findInexact(each)
    if (found !== undefined) return [name, ...found]
  }
  return undefined
}

const isUnchanged = (value: number): boolean =>
  Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value))

/** Reads `anyOf: [text, object]`, such as the name of a size or its width and height, as a string. */
export function stringOrObject({
  anyOf,
  ...schema
}: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const variants = Array.isArray(anyOf) && schema.type === undefined ? anyOf.filter(isObject) : []
  const text = variants.find(({ type }) => type === 'string')
  const object = variants.find(({ type }) => type === 'object')
  if (text === undefined || object === undefined || variants.length !== 2)
    return anyOf === undefined ? schema : { ...schema, anyOf }
  return { ...text, ...schema, orObject: object }
}

/** Returns the JSON Schema of a parameter, as the document has it. */
export function parameterJson(schema: ParameterSchema): unknown {
  if (schema.type === 'other') return schema.json
  if (schema.type !== 'string' || schema.orObject === undefined) return schema
  const { type, enum: values, maxLength, orObject, ...others } = schema
  const text = { type, ...(values && { enum: values }), ...(maxLength !== undefined && { maxLength }) }
  return { anyOf: [text, orObject], ...others }
}
