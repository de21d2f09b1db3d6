/** Form fields of a new run, derived from the model schemas. A new model parameter needs no change here. */
import { LOCAL_DEFAULTS } from '../../protocol/limits.js'
import type { Kind, ParameterSchema } from '../../protocol/models.js'
import { builtInSchema, listedValues, valueOfText } from '../../protocol/parameters.js'
import { isHttpUrl } from '../../protocol/parse.js'
import { RadioGroup, TextAreaField, TextField } from '../components/field.js'

export interface ParameterFieldProps {
  readonly field: FormField
  readonly value: string
  readonly error: string | undefined
  readonly onChange: (value: string) => void
}

/** Shows the control for a parameter, depending on its schema. The prompt and the images have their own components. */
export function ParameterField({ field, value, error, onChange }: ParameterFieldProps) {
  const { label, hint, control, isRequired, standard } = field
  const text = { label, hint, error, isOptional: !isRequired, value, onInput: onChange }
  if (control === 'ratio' || control === 'choice')
    return <ChoiceField {...{ field, value, error, onChange }} />
  if (control === 'switch') return <ChoiceField {...{ field: switchField(field), value, error, onChange }} />
  if (control === 'list') return <TextAreaField {...text} hint={`${hint}. One per line.`} />
  if (control === 'number')
    return <TextField {...text} type="number" step="any" placeholder={standard ?? ''} />
  return <TextField {...text} placeholder={standard ?? ''} />
}

/** Three states: an omitted boolean is not the same as false. */
const switchField = (field: FormField): FormField => ({ ...field, choices: ['true', 'false'] })

const SWITCH_LABELS: Readonly<Record<string, string>> = { true: 'On', false: 'Off' }

function ChoiceField({ field, value, error, onChange }: ParameterFieldProps) {
  const { label, control, choices, standard, name, isRequired } = field
  const unit = name === 'duration' ? ' s' : ''
  const items = choices.map((choice) => ({
    value: choice,
    label: (
      <>
        {control === 'ratio' && <Shape ratio={choice} />}
        {(control === 'switch' ? SWITCH_LABELS[choice] : choice) + unit}
      </>
    ),
  }))
  // An optional parameter without a known default gets an extra choice.
  const defaultItem = standard === undefined && !isRequired ? [{ value: '', label: 'Default' }] : []
  return (
    <RadioGroup
      label={label}
      value={value === '' ? (standard ?? '') : value}
      choices={[...defaultItem, ...items]}
      error={error}
      onChange={onChange}
    />
  )
}

function Shape({ ratio }: { readonly ratio: string }) {
  const { width, height } = shapeOf(ratio)
  return (
    <span class="ratio-box" aria-hidden="true">
      <span style={{ width: `${width}px`, height: `${height}px` }} />
    </span>
  )
}

/** `ratio`: choices drawn as rectangles. `sources`: the list of reference images. */
type Control = 'prompt' | 'ratio' | 'choice' | 'switch' | 'number' | 'text' | 'list' | 'sources'

export interface FormField {
  readonly name: string
  /** `Aspect ratio` */
  readonly label: string
  readonly hint: string
  readonly control: Control
  readonly schema: ParameterSchema
  readonly isRequired: boolean
  /** Allowed values; empty if the control is not a choice. */
  readonly choices: readonly string[]
  /** Default value of the service, as text; undefined if unknown. */
  readonly standard: string | undefined
}

export const SOURCES = 'image_urls'

export function fieldsOf(kind: Kind): readonly FormField[] {
  const fields = Object.entries(builtInSchema(kind).properties).map(([name, schema]) =>
    fieldOf(kind, name, schema),
  )
  // Put the prompt first, wherever it is in the schema.
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
    isRequired: builtInSchema(kind).required.includes(name),
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

/**
 * Field texts by parameter name. A list has one entry per line; a switch is `true` or `false`. Images are stored
 * separately.
 */
export type Values = Readonly<Record<string, string>>

type RunInput = Readonly<Record<string, unknown>>

/** Returns the `input` of the create request. Omits empty fields. */
export function inputOf(kind: Kind, values: Values, sources: readonly string[]): RunInput {
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
  /** URLs in `image_urls`. */
  readonly urls: readonly string[]
  /** Number of images that were sent as data. They are lost, since no response contains them. */
  readonly lostImages: number
  /** Input fields that the form does not have. */
  readonly unknown: readonly string[]
}

/** Fills the form from a run, so that the user can create it again with changes. */
export function filledForm(kind: Kind, input: RunInput): FilledForm {
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

/** Keeps only the values that are also valid for `kind`. Used when the user selects another model. */
export function valuesForKind(kind: Kind, values: Values): Values {
  const kept = fieldsOf(kind).flatMap(({ name, choices }): readonly [string, string][] => {
    const value = values[name]
    return value === undefined || (choices.length > 0 && !choices.includes(value)) ? [] : [[name, value]]
  })
  return Object.fromEntries(kept)
}

/** Size in pixels of a rectangle with this ratio, scaled to fit 20 × 20. */
export function shapeOf(ratio: string): { readonly width: number; readonly height: number } {
  const [width = 1, height = 1] = ratio.split(':').map(Number)
  const scale = 20 / Math.max(width, height)
  return { width: Math.round(width * scale), height: Math.round(height * scale) }
}
