/** Parts of the manifest's JSON Schema: values of fields, and conditions. */
import type { ParameterSchema } from '../../protocol/models.js'

export type Schema = Readonly<Record<string, unknown>>

export const NULL: Schema = { type: 'null' }
export const orNull = (...schemas: readonly Schema[]): Schema => ({ anyOf: [...schemas, NULL] })
export const ref = (name: string): Schema => ({ $ref: `#/definitions/${name}` })
export const isSet: Schema = { not: NULL }

export const MODEL: Schema = { type: 'string', pattern: '^[^/\\s]+/\\S+$' }
export const TEXT: Schema = { type: ['string', 'number', 'boolean'], pattern: '\\S' }
/** Names and paths. */
export const LINE: Schema = {
  ...TEXT,
  pattern:
    '^[^\\u0000-\\u001f\\u007f-\\u009f]*[^\\s\\u0000-\\u001f\\u007f-\\u009f][^\\u0000-\\u001f\\u007f-\\u009f]*$',
  maxLength: 1_000,
}

/** Where a text with a placeholder is not valid by itself. */
export const PLACEHOLDER: Schema = { type: 'string', pattern: '\\{[^{}]+\\}' }

/** Any of these, each once. */
export function anyOf(schemas: readonly Schema[]): Schema {
  const unique = [...new Map(schemas.map((each) => [JSON.stringify(each), each])).values()]
  return unique.length === 1 && unique[0] !== undefined ? unique[0] : { anyOf: unique }
}

/** A listed text may be written as a number: `duration: 5`. */
const choices = (allowed: readonly string[]): Schema => ({
  enum: [...allowed, ...allowed.filter((each) => String(Number(each)) === each).map(Number)],
})

/** Texts that are not listed, and lists of them. */
export const isOpen = (schema: ParameterSchema): boolean =>
  schema.type === 'array' || (schema.type === 'string' && schema.enum === undefined)

/** With a placeholder: the rules of the row refuse it without a matrix. */
export function parameterSchema(schema: ParameterSchema): Schema {
  if (schema.type === 'array') {
    const most = schema.maxItems === undefined ? {} : { maxItems: schema.maxItems }
    return { type: 'array', items: { type: 'string', pattern: '\\S' }, ...most }
  }
  if (isOpen(schema)) return TEXT
  const { description: _, ...typed } = schema
  return anyOf([schema.type === 'string' ? choices(schema.enum ?? []) : typed, PLACEHOLDER])
}

export const has = (name: string, schema: Schema = isSet): Schema => ({
  required: [name],
  properties: { [name]: schema },
})

// biome-ignore lint/suspicious/noThenProperty: the word of JSON Schema
export const when = (condition: Schema, result: Schema): Schema => ({ if: condition, then: result })
