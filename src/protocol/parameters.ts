/**
 * Parameters of the models: which kinds have them, their types in words, texts as values of their types, and
 * whether a number keeps its digits. Nothing else branches on the types but the flags, so a new parameter is one
 * property in `models.ts`.
 */

import { KINDS, type Kind, MODEL_INPUTS, type ModelSchema, type ParameterSchema } from './models.js'
import { isObject } from './parse.js'
import { printable, quoteWord } from './text.js'

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

interface RunWords {
  /** Quoted for a POSIX shell: the prompt, then flags with their values. */
  readonly words: readonly string[]
  /** Values without a flag: for `--input`. */
  readonly rest: Readonly<Record<string, unknown>>
}

/** The input of a run as words of `rushes run`. */
export function runWords(kind: Kind, input: Readonly<Record<string, unknown>>): RunWords {
  const words: string[] = []
  const rest: Record<string, unknown> = {}
  const schemas = parametersOf(kind)
  for (const [name, value] of Object.entries(input)) {
    const schema = Object.hasOwn(schemas, name) ? schemas[name] : undefined
    const text = String(value)
    const fits = schema !== undefined && schema.type !== 'array' && valueOfText(schema, text) === value
    // A control character in a pasted line would be a command of the terminal or the shell.
    if (!fits || printable(text) !== text || text === '' || text === '-') rest[name] = value
    else if (schema.type === 'boolean') words.push(value === true ? flagOf(name) : negatedFlagOf(name))
    else if (name === 'prompt' && !text.startsWith('-')) words.unshift(quoteWord(text))
    else words.push(flagOf(name), quoteWord(text))
  }
  return { words, rest }
}

/** Replaces an image that was sent as a data: URL. */
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
 * Whether JSON sends the number that was written as `text`: it is sent from doubles, which keep about 16 digits.
 * `1.0` is sent as 1. Not for 9007199254740993, which would be sent as 9007199254740992, for `1e400`, or for `.inf`
 * of YAML.
 */
export const isExact = (text: string, value: number): boolean =>
  Number.isFinite(value) && decimalOf(text) === decimalOf(String(value))

/** How a number that is not exact would be sent: `9007199254740993 would be sent as 9007199254740992`. */
export const describeLoss = (text: string, value: number): string =>
  Number.isFinite(value) ? `${text} would be sent as ${value}` : `${text} cannot be sent as a number`

const DECIMAL = /^([+-]?)(\d*)\.?(\d*)(?:e([+-]?\d+))?$/i

/** One text for each value; undefined for text that is not a number. */
function decimalOf(text: string): string | undefined {
  // YAML has hexadecimal and octal numbers.
  if (/^0(x[\da-f]+|o[0-7]+)$/i.test(text)) return decimalOf(String(BigInt(text)))
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = DECIMAL.exec(text) ?? []
  const digits = `${whole}${fraction}`.replace(/^0+/, '')
  if (whole === '' && fraction === '') return undefined
  if (digits === '') return '0'
  // Not by an expression, which would take quadratic time with many zeros.
  let end = digits.length
  while (digits.charAt(end - 1) === '0') end -= 1
  const power = Number(exponent) - fraction.length + digits.length - end
  return `${sign === '-' ? '-' : ''}${digits.slice(0, end)}e${power}`
}

/** The path (names, and positions in lists) of a number that a parser may have changed; undefined without one. */
export function findInexact(value: unknown): readonly string[] | undefined {
  if (typeof value === 'number') return isCertain(value) ? undefined : []
  if (typeof value !== 'object' || value === null) return undefined
  for (const [name, each] of Object.entries(value)) {
    const found = findInexact(each)
    if (found !== undefined) return [name, ...found]
  }
  return undefined
}

const isCertain = (value: number): boolean =>
  Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value))
