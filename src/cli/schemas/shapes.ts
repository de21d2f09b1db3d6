/** Builders for the output schemas. Every key is required, and an unknown value is null. */
export type Schema = Readonly<Record<string, unknown>>

type Name = 'string' | 'integer' | 'boolean' | 'object' | 'array'

const described =
  (type: Name | readonly Name[]) =>
  (description: string, more: Schema = {}): Schema => ({ description, type, ...more })

export const text = described('string')
export const integer = (description: string): Schema => ({ description, type: 'integer', minimum: 0 })

/** Null means unknown or absent. */
export const orNull = (schema: Schema): Schema => ({
  ...schema,
  type: [...[schema.type].flat(), 'null'],
  ...(Array.isArray(schema.enum) && { enum: [...schema.enum, null] }),
})

/** Any value, defined elsewhere. */
export const any = (description: string): Schema => ({ description })

export const list = (description: string, items: Schema): Schema => ({ description, type: 'array', items })

/** Later versions may add keys, so readers must ignore unknown ones. */
export const record = (description: string, properties: Readonly<Record<string, Schema>>): Schema => ({
  description,
  type: 'object',
  required: Object.keys(properties),
  properties,
})

export const TIME = '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d+)?Z$'
export const time = (description: string): Schema =>
  text(`${description}; ISO 8601 in UTC`, { pattern: TIME })

const SHA256 = '^[0-9a-f]{64}$'
export const sha256 = (description: string): Schema =>
  text(`SHA-256 ${description}, 64 hexadecimal digits`, { pattern: SHA256 })

export const bytes = (description: string): Schema => integer(`${description}, in bytes`)
export const milliseconds = (description: string): Schema => integer(`${description}, in milliseconds`)
