/** The flags of a model, generated from its schema: one flag for each parameter. */
import { Option } from 'commander'
import type { Kind, ParameterSchema } from '../../protocol/models.js'
import {
  builtInSchema,
  describeValues,
  flagOf,
  listedValues,
  negatedFlagOf,
  valueOfText,
} from '../../protocol/parameters.js'
import { repeated } from './values.js'

const SHORT: Readonly<Record<string, string>> = { image_urls: '-i' }

export type ParameterValue = string | number | boolean | readonly string[]

const capitalized = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`

function optionOf(name: string, schema: ParameterSchema): Option {
  const description = capitalized(schema.description)
  const short = SHORT[name]
  const flag = short === undefined ? flagOf(name) : `${short}, ${flagOf(name)}`
  const values = describeValues(schema, ', ')
  if (schema.type === 'boolean') return new Option(flag, description)
  if (schema.type === 'array') {
    const about = `${description}: URL, path, run:<id> or - (${values})`
    return new Option(`${flag} <source>`, about).argParser(repeated)
  }
  if (listedValues(schema) !== undefined) return new Option(`${flag} <value>`, `${description}: ${values}`)
  if (schema.type === 'string') return new Option(`${flag} <text>`, description)
  return new Option(`${flag} <n>`, `${description}: ${values}`)
}

export const modelOptions = (kind: Kind): readonly Option[] =>
  Object.entries(builtInSchema(kind).properties)
    .flatMap(([name, schema]) => [
      optionOf(name, schema),
      ...(schema.type === 'boolean' ? [new Option(negatedFlagOf(name), `Turn ${flagOf(name)} off`)] : []),
    ])
    .map((option) => option.helpGroup('Model options:'))

/** The parameters that flags set, by their names in the schema and with values of the schema's types. */
export function parametersGiven(
  kind: Kind,
  options: Readonly<Record<string, unknown>>,
): Readonly<Record<string, ParameterValue>> {
  const values = Object.entries(builtInSchema(kind).properties).flatMap(([name, schema]) => {
    const value = options[optionOf(name, schema).attributeName()] as
      | Exclude<ParameterValue, number>
      | undefined
    if (value === undefined) return []
    return [[name, typeof value === 'string' ? valueOfText(schema, value) : value] as const]
  })
  return Object.fromEntries(values)
}
