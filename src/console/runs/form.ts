/** The form of a new run, from the model schemas: a new parameter appears by itself. Pure. */
import { LOCAL_DEFAULTS } from '../../protocol/local-prices.js'
import type { Kind, ParameterSchema } from '../../protocol/models.js'
import { isRequired, listedValues, parametersOf, valueOfText } from '../../protocol/parameters.js'
import { isHttpUrl } from '../../protocol/parse.js'

/** `ratio`: a choice that is shown as shapes. `sources`: the list of images. */
export type Control = 'prompt' | 'ratio' | 'choice' | 'switch' | 'number' | 'text' | 'list' | 'sources'

export interface FormField {
  readonly name: string
  /** `Aspect ratio` */
  readonly label: string
  readonly hint: string
  readonly control: Control
  readonly schema: ParameterSchema
  readonly isRequired: boolean
  /** Of a choice. */
  readonly choices: readonly string[]
  /** What the service takes when the field is left out, as text; undefined when that is not known. */
  readonly standard: string | undefined
}

export const SOURCES = 'image_urls'

export function fieldsOf(kind: Kind): readonly FormField[] {
  const fields = Object.entries(parametersOf(kind)).map(([name, schema]) => fieldOf(kind, name, schema))
  // The prompt comes first whatever the order of the schema is.
  return [...fields.filter(isPrompt), ...fields.filter((field) => !isPrompt(field))]
}

const isPrompt = ({ control }: FormField): boolean => control === 'prompt'

function fieldOf(kind: Kind, name: string, schema: ParameterSchema): FormField {
  const standard = LOCAL_DEFAULTS[kind][name]
  return {
    name,
    label: labelOf(name),
    hint: schema.description,
    control: controlOf(name, schema),
    schema,
    isRequired: isRequired(kind, name),
    choices: listedValues(schema) ?? [],
    standard: standard === undefined ? undefined : String(standard),
  }
}

export function labelOf(name: string): string {
  if (name === SOURCES) return 'Reference images'
  const words = name.replaceAll('_', ' ')
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`
}

const RATIO = /^\d+:\d+$/

function controlOf(name: string, schema: ParameterSchema): Control {
  if (name === 'prompt') return 'prompt'
  if (name === SOURCES) return 'sources'
  const choices = listedValues(schema)
  if (choices !== undefined) return choices.every((each) => RATIO.test(each)) ? 'ratio' : 'choice'
  if (schema.type === 'boolean') return 'switch'
  if (schema.type === 'array') return 'list'
  return schema.type === 'string' ? 'text' : 'number'
}

/** What was entered, by parameter. A list has one entry per line, a switch `true`. Images are kept apart. */
export type Values = Readonly<Record<string, string>>

export type Input = Readonly<Record<string, unknown>>

/** The input of the request: a field that is empty is left out. */
export function inputOf(kind: Kind, values: Values, sources: readonly string[]): Input {
  const entries = fieldsOf(kind).flatMap(({ name, control, schema }): readonly [string, unknown][] => {
    if (control === 'sources') return sources.length === 0 ? [] : [[name, sources]]
    const text = values[name] ?? ''
    if (text.trim() === '') return []
    if (control === 'list') return [[name, text.split('\n').filter((line) => line.trim() !== '')]]
    return [[name, valueOfText(schema, control === 'number' ? text.trim() : text)]]
  })
  return Object.fromEntries(entries)
}

export interface FilledForm {
  readonly values: Values
  /** The URLs of `image_urls`. */
  readonly urls: readonly string[]
  /** Images that were sent as data, which no response has. */
  readonly lostImages: number
  /** Fields of the input that the form does not have. */
  readonly unknown: readonly string[]
}

/** The form of a run, to create it again with changes. */
export function filledForm(kind: Kind, input: Input): FilledForm {
  const fields = fieldsOf(kind)
  const sources = Array.isArray(input[SOURCES]) ? (input[SOURCES] as readonly unknown[]) : []
  const values = fields.flatMap(({ name, control }): readonly [string, string][] => {
    const value = Object.hasOwn(input, name) ? input[name] : undefined
    if (control === 'sources' || value === undefined || value === null) return []
    return [[name, Array.isArray(value) ? value.join('\n') : String(value)]]
  })
  return {
    values: Object.fromEntries(values),
    urls: sources.filter(isHttpUrl),
    lostImages: sources.filter((source) => !isHttpUrl(source)).length,
    unknown: Object.keys(input).filter((name) => !fields.some((field) => field.name === name)),
  }
}

/** The values that another kind's form has too, so that a change of the model keeps what it can. */
export function valuesForKind(kind: Kind, values: Values): Values {
  const kept = fieldsOf(kind).flatMap(({ name, choices }): readonly [string, string][] => {
    const value = values[name]
    return value === undefined || (choices.length > 0 && !choices.includes(value)) ? [] : [[name, value]]
  })
  return Object.fromEntries(kept)
}

/** Width and height of a small shape with this ratio, in pixels of a square of 20. */
export function shapeOf(ratio: string): { readonly width: number; readonly height: number } {
  const [width = 1, height = 1] = ratio.split(':').map(Number)
  const scale = 20 / Math.max(width, height)
  return { width: Math.round(width * scale), height: Math.round(height * scale) }
}
