/**
 * What the rest of the program needs to know about parameters: which kinds have them, their types in words, and texts as
 * values of their types. Nothing else branches on the types but the flags, so a new parameter is one property in
 * `models.ts`.
 */
import { isExact } from './exact-number.js'
import { KINDS, type Kind, MODEL_INPUTS, type ModelSchema, type ParameterSchema } from './models.js'

export const parametersOf = (kind: Kind): Readonly<Record<string, ParameterSchema>> =>
  (MODEL_INPUTS[kind] as ModelSchema).properties

export const isRequired = (kind: Kind, name: string): boolean =>
  (MODEL_INPUTS[kind] as ModelSchema).required.includes(name)

/** Every parameter of either model, in the order of the schemas. */
export const PARAMETER_NAMES: readonly string[] = [
  ...new Set(KINDS.flatMap((kind) => Object.keys(parametersOf(kind)))),
]

export const kindsWith = (name: string): readonly Kind[] =>
  KINDS.filter((kind) => Object.hasOwn(parametersOf(kind), name))

/** The flag of a list is named by one of its entries. */
const FLAGS: Readonly<Record<string, string>> = { image_urls: '--image-url' }

/** `aspect_ratio` is `--aspect-ratio`. */
export const flagOf = (parameter: string): string => FLAGS[parameter] ?? `--${parameter.replaceAll('_', '-')}`

/** A boolean is turned off by this flag. */
export const negatedFlagOf = (parameter: string): string => flagOf(parameter).replace(/^--/, '--no-')

/** The values that a schema lists, as text; undefined when it lists none. */
export const listedValues = (schema: ParameterSchema): readonly string[] | undefined =>
  'enum' in schema && schema.enum !== undefined ? schema.enum.map(String) : undefined

/** What a parameter accepts in words, its listed values joined by `separator`. */
export function describeValues(schema: ParameterSchema, separator: string): string {
  if (schema.type === 'array')
    return `repeatable${schema.maxItems === undefined ? '' : `, at most ${schema.maxItems}`}`
  return listedValues(schema)?.join(separator) ?? describeType(schema)
}

/** A value of this type in words: `a whole number from 0 to 10`. */
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
      return 'text'
  }
}

interface Bounds {
  readonly minimum?: number
  readonly maximum?: number
}

function describeBounds({ minimum, maximum }: Bounds): string {
  if (minimum === undefined) return maximum === undefined ? '' : ` up to ${maximum}`
  return maximum === undefined ? ` from ${minimum}` : ` from ${minimum} to ${maximum}`
}

const WHOLE_NUMBER = /^-?\d+$/
/** As `valueOfText` reads it. */
export const NUMBER = /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i

/**
 * A flag's value or a CSV cell as a value of the schema's type. An invalid text, or a number that would lose digits, is
 * returned unchanged: validation then reports it with the same message as an invalid value of `--input`.
 */
export function valueOfText({ type }: ParameterSchema, text: string): string | number | boolean {
  switch (type) {
    case 'boolean':
      return /^true$/i.test(text) ? true : /^false$/i.test(text) ? false : text
    case 'integer':
      return WHOLE_NUMBER.test(text) && isExact(text, Number(text)) ? Number(text) : text
    case 'number':
      return NUMBER.test(text) && isExact(text, Number(text)) ? Number(text) : text
    default:
      return text
  }
}
