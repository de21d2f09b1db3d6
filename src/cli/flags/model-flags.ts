/**
 * The flags of `run`: those of the model, generated from the schema of its document, one for each parameter with a simple
 * type; and those of every create.
 */
import { Option } from 'commander'
import { DEFAULTS } from '../../protocol/defaults.js'
import { firstPicture, mediaParameters } from '../../protocol/media-parameters.js'
import {
  describeValues,
  listedValues,
  type ModelSchema,
  type ParameterSchema,
  valueOfText,
} from '../../protocol/models.js'
import { capitalized, shortened } from '../../protocol/text.js'
import { globalOptions } from '../settings/globals.js'
import { type DeliveryOptions, deliveryOptions } from './delivery.js'
import { labelOption, onlyOne, repeated } from './values.js'

export type ParameterValue = string | number | bigint | boolean | readonly string[]

/** Flags with their own name. A list has a flag in the singular, because each use adds one entry. */
const FLAGS: Readonly<Record<string, string>> = { image_urls: '--image-url' }

/** Returns the name that the flag of a parameter has: `--aspect-ratio` for `aspect_ratio` and `aspectRatio`. See `flagsOf`. */
export const flagOf = (parameter: string): string =>
  FLAGS[parameter] ??
  `--${parameter
    .replace(/([a-z\d])([A-Z])/g, '$1-$2')
    .replace(/[_.]/g, '-')
    .toLowerCase()}`

/**
 * Returns the flags of a schema by parameter. A parameter has no flag if its type has none, if its name is not plain, or
 * if another flag has the same name or key: it is then set by `--input`, or in a manifest.
 */
export function flagsOf({ properties }: ModelSchema): ReadonlyMap<string, string> {
  const others = [...globalOptions(), ...deliveryOptions(), ...runOptions()]
  const taken = new Set([
    ...others.map((option) => option.attributeName()),
    ...['model', 'input', 'promptFile', 'version', 'help'],
  ])
  const flags = new Map<string, string>()
  for (const [name, { type }] of Object.entries(properties)) {
    const flag = flagOf(name)
    // commander reads `--no-x` as turning `--x` off, and throws for `--x-`.
    const isPlain = /^--(?!no-)[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(flag)
    if (type === 'other' || !isPlain) continue
    const key = new Option(flag).attributeName()
    if (taken.has(key)) continue
    taken.add(key)
    flags.set(name, flag)
  }
  return flags
}

/** Joins the parts of a help text that are not empty. */
const joined = (...parts: readonly string[]): string =>
  capitalized(parts.filter((part) => part !== '').join(': '))

interface Parameter {
  readonly name: string
  readonly flag: string
  readonly schema: ParameterSchema
  readonly isMedia: boolean
}

function optionOf({ flag, schema, isMedia }: Parameter): Option {
  const description = shortened(schema.description)
  const values = shortened(describeValues(schema, ', '))
  const standard = defaultText(schema)
  const create = (value: string, about: string) => new Option(`${flag}${value}`, `${about}${standard}`)
  if (schema.type === 'boolean') return create('', joined(description))
  if (isMedia) {
    const about = joined(description, 'URL, path, run:<id> or -')
    if (schema.type === 'array') return create(' <source>', `${about} (${values})`).argParser(repeated)
    return create(' <source>', about).argParser(onlyOne(flag))
  }
  const listed = schema.type === 'array' ? schema.items.enum : listedValues(schema)
  if (schema.type === 'array') {
    const option = create(' <text>', `${joined(description)} (${values})`.trim()).argParser(repeated)
    return listed === undefined ? option : withValues(option, listed)
  }
  // Values are not capitalized.
  if (listed !== undefined)
    return withValues(create(' <value>', joined(description || 'one of', values)), listed)
  if (schema.type !== 'string') return create(' <n>', joined(description, values))
  return create(' <text>', joined(description, schema.maxLength === undefined ? '' : values))
}

/** Lists the values for completion. commander does not check them: its error message is another one. */
const withValues = (option: Option, listed: readonly string[]): Option =>
  Object.assign(option, { argChoices: [...listed] })

/** The service uses the default when a parameter is left out. It is not sent, so commander does not get it. */
export function defaultText(schema: ParameterSchema): string {
  const standard = 'default' in schema ? schema.default : undefined
  return standard === undefined ? '' : ` (default: ${shortened([standard].flat().join(', '), 60)})`
}

/** `-i` fills the first parameter for images. */
function parametersOf(model: ModelSchema): readonly Parameter[] {
  const flags = flagsOf(model)
  const media = mediaParameters(model)
  const picture = firstPicture(model)
  return Object.entries(model.properties).flatMap(([name, schema]) => {
    const long = flags.get(name)
    const flag = name === picture ? `-i, ${long}` : long
    return long === undefined || flag === undefined ? [] : [{ name, flag, schema, isMedia: media.has(name) }]
  })
}

export const modelOptions = (model: ModelSchema): readonly Option[] =>
  parametersOf(model).flatMap((each) => [
    optionOf(each),
    ...(each.schema.type === 'boolean'
      ? [new Option(flagOf(each.name).replace(/^--/, '--no-'), `Turn ${each.flag} off`)]
      : []),
  ])

/** The parameters that flags set, by their names in the schema and with values of the schema's types. */
export function parametersGiven(
  model: ModelSchema,
  options: Readonly<Record<string, unknown>>,
): Readonly<Record<string, ParameterValue>> {
  const values = parametersOf(model).flatMap((each) => {
    const { name, schema } = each
    const key = optionOf(each).attributeName()
    const value = Object.hasOwn(options, key)
      ? (options[key] as Exclude<ParameterValue, number | bigint> | undefined)
      : undefined
    if (value === undefined) return []
    return [[name, typeof value === 'string' ? valueOfText(schema, value) : value] as const]
  })
  return Object.fromEntries(values)
}

/** Values of `runOptions` and of the flags for the outputs, not checked yet. */
export interface CreateFlags extends DeliveryOptions {
  readonly count: string
  readonly wait: boolean
  readonly dryRun?: boolean
  readonly maxCost?: string
  readonly label?: readonly string[]
  /** Whether many runs are created without a confirmation. */
  readonly yes?: boolean
}

/** On a terminal, more runs than this need a confirmation. */
export const MAX_UNASKED_RUNS = Number(DEFAULTS.unaskedRuns)

/** The flags of `run` for the create. The rare ones are last. */
export const runOptions = (): readonly Option[] => [
  new Option('-n, --count <n>', 'Number of runs of the same input').default(DEFAULTS.count),
  new Option('--dry-run', 'Print the request body that would be sent'),
  new Option('--max-cost <amount>', 'Exit with 2 if the estimate is higher, or unknown'),
  new Option('--no-wait', 'Print the run id and exit as soon as it is created'),
  labelOption('Label in the journal (repeatable); never sent'),
  new Option('--yes', `Do not ask before creating more than ${MAX_UNASKED_RUNS} runs`),
]
