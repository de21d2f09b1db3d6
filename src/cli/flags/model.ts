/** Model flags, projected from a model's schema: a parameter there is a flag here. */
import { Option } from 'commander'
import { type Kind, MODEL_INPUTS, type ModelSchema, type ParameterSchema } from '../../protocol/models.js'
import { repeated } from './repeated.js'

const SHORT: Readonly<Record<string, string>> = { image_urls: '-i' }

/** A list is named by one of its entries. */
const FLAGS: Readonly<Record<string, string>> = { image_urls: '--image-url' }

/** `aspect_ratio` is `--aspect-ratio`. */
export const flagOf = (parameter: string): string => FLAGS[parameter] ?? `--${parameter.replaceAll('_', '-')}`

const parametersOf = (kind: Kind): readonly (readonly [string, ParameterSchema])[] =>
  Object.entries((MODEL_INPUTS[kind] as ModelSchema).properties)

function optionOf(name: string, schema: ParameterSchema): Option {
  const short = SHORT[name]
  const flag = short === undefined ? flagOf(name) : `${short}, ${flagOf(name)}`
  if (schema.type === 'array') {
    const most = schema.maxItems === undefined ? '' : `, at most ${schema.maxItems}`
    return new Option(
      `${flag} <source>`,
      `${schema.description}: URL, path, run:<id> or - (repeatable${most})`,
    ).argParser(repeated)
  }
  if (schema.enum === undefined) return new Option(`${flag} <text>`, schema.description)
  return new Option(`${flag} <value>`, `${schema.description}: ${schema.enum.join(', ')}`)
}

export const modelOptions = (kind: Kind): readonly Option[] =>
  parametersOf(kind).map(([name, schema]) => optionOf(name, schema).helpGroup('Model options:'))

const camelCase = (flag: string): string =>
  flag.slice(2).replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())

/** The parameters that flags set, by their names in the schema; lists and texts as they were given. */
export function parametersGiven(
  kind: Kind,
  options: Readonly<Record<string, unknown>>,
): Record<string, string | readonly string[]> {
  const given: Record<string, string | readonly string[]> = {}
  for (const [name] of parametersOf(kind)) {
    const value = options[camelCase(flagOf(name))]
    if (typeof value === 'string' || Array.isArray(value)) given[name] = value as string | readonly string[]
  }
  return given
}
