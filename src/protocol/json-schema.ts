/**
 * Functions that build the JSON Schemas of the tools of `rushes mcp`. A schema is a plain object; keywords without a
 * function are written directly.
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

export const text = typed('string')
export const flag = typed('boolean')
/** The minimum is 0, unless `more` contains another one. */
export const integer = typed('integer', { minimum: 0 })

export const list = (items: JsonSchema, description?: string): JsonSchema =>
  typed('array')(description, { items })

/** Also allows null, which means unknown or absent. `schema` has a `type`. */
export function orNull(schema: JsonSchema): JsonSchema {
  const values = Array.isArray(schema.enum) && { enum: [...schema.enum, null] }
  return { ...schema, type: [...[schema.type].flat(), 'null'], ...values }
}
