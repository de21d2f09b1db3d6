/**
 * Functions that build JSON Schemas: for the outputs of commands, the tools of `rushes mcp`, the service's OpenAPI
 * document and the manifest. A schema is a plain object; keywords without a function are written directly.
 */
export type JsonSchema = Readonly<Record<string, unknown>>
export type Properties = Readonly<Record<string, JsonSchema>>

const typed =
  (type: string, base: JsonSchema = {}) =>
  (description?: string, more: JsonSchema = {}): JsonSchema => ({
    ...(description !== undefined && { description }),
    type,
    ...base,
    ...more,
  })

export const NULL: JsonSchema = { type: 'null' }
export const text = typed('string')
export const flag = typed('boolean')
/** Of both, the minimum is 0, unless `more` contains another one. */
export const integer = typed('integer', { minimum: 0 })
export const number = typed('number', { minimum: 0 })

export const list = (items: JsonSchema, description?: string): JsonSchema =>
  typed('array')(description, { items })

/** An object whose keys are all required. Other keys are allowed, because later versions may add some. */
export const record = (properties: Properties, description?: string): JsonSchema =>
  typed('object')(description, { required: Object.keys(properties), properties })

/** Allows any of these schemas. Duplicates are removed. */
export function anyOf(schemas: readonly JsonSchema[]): JsonSchema {
  const unique = [...new Map(schemas.map((each) => [JSON.stringify(each), each])).values()]
  return unique.length === 1 && unique[0] !== undefined ? unique[0] : { anyOf: unique }
}

/** Also allows null, which means unknown or absent. */
export function orNull(schema: JsonSchema): JsonSchema {
  if (schema.type === undefined) return { anyOf: [...((schema.anyOf as JsonSchema[]) ?? [schema]), NULL] }
  const values = Array.isArray(schema.enum) && { enum: [...schema.enum, null] }
  return { ...schema, type: [...[schema.type].flat(), 'null'], ...values }
}

const TIME = '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d+)?Z$'
export const time = (description: string): JsonSchema =>
  text(`${description}; ISO 8601 in UTC`, { pattern: TIME })

export const sha256 = (description: string): JsonSchema =>
  text(`SHA-256 ${description}, 64 hexadecimal digits`, { pattern: '^[0-9a-f]{64}$' })

export const bytes = (description: string): JsonSchema => integer(`${description}, in bytes`)
export const milliseconds = (description: string): JsonSchema => integer(`${description}, in milliseconds`)
