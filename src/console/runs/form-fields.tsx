/** Form fields of a new run, made from the document of its model. */
import { IMAGE_INPUT, MODEL_INPUTS, type ModelDocument, type ParameterSchema } from '../../protocol/models.js'
import { describeType, findInexact, listedValues, valueOfText } from '../../protocol/parameters.js'
import { isHttpUrl, parseJson } from '../../protocol/parse.js'
import { defaultsOf } from '../../protocol/price.js'
import { printable, printableJson } from '../../protocol/text.js'
import { inputProblems } from '../../protocol/validate.js'
import { type Choice, RadioGroup, SelectField, TextAreaField, TextField } from '../components/field.js'
import { capitalized } from '../format.js'
import { messagesOf } from './create-failure.js'

export interface ParameterFieldProps {
  readonly field: FormField
  readonly value: string
  readonly error: string | undefined
  readonly onChange: (value: string) => void
}

/** Shows the control for a parameter, depending on its schema. The images have their own component. */
export function ParameterField({ field, value, error, onChange }: ParameterFieldProps) {
  const { name, label, hint, schema, isRequired, choices, standard = '' } = field
  const notes = { label, hint, error, isOptional: !isRequired }
  if (choices.length > 0) {
    const characters = choices.reduce((sum, each) => sum + each.label.length, 0)
    const isLong = choices.length > MAX_BUTTONS || characters > MAX_BUTTON_CHARACTERS
    // Without a value, the model uses its default. Nothing is selected in a required choice without a default.
    const none = { value: '', label: isRequired ? 'Choose' : 'Default' }
    const first = standard === '' && (isLong || !isRequired) ? [none] : []
    const choice = { ...notes, value: value || standard, onChange }
    if (isLong) return <SelectField {...choice} choices={[...first, ...choices]} />
    const buttons = choices.map((each) => (RATIO.test(each.value) ? withShape(each.value) : each))
    return <RadioGroup {...choice} choices={[...first, ...buttons]} />
  }
  const isPrompt = name === 'prompt'
  const placeholder = isPrompt ? 'A red fox in the snow at dusk' : standard
  const text = { ...notes, name, value, placeholder, onInput: onChange }
  if (schema.type === 'integer' || schema.type === 'number') {
    const { type, minimum, maximum } = schema
    const [min, max] = [minimum?.toString(), maximum?.toString()]
    return <TextField {...text} {...{ min, max }} type="number" step={type === 'integer' ? 1 : 'any'} />
  }
  const rows = isPrompt ? 5 : schema.type === 'string' ? 1 : 3
  return <TextAreaField {...text} rows={rows} isCode={schema.type === 'other'} />
}

/** More choices, or longer ones, are a list to select from. */
const MAX_BUTTONS = 12
const MAX_BUTTON_CHARACTERS = 80
const RATIO = /^\d{1,4}:\d{1,4}$/

/** The choice of a ratio, drawn as a rectangle. */
function withShape(ratio: string) {
  const { width, height } = shapeOf(ratio)
  const label = (
    <>
      <span class="ratio-box" aria-hidden="true">
        <span style={{ width: `${width}px`, height: `${height}px` }} />
      </span>
      {ratio}
    </>
  )
  return { value: ratio, label }
}

export interface FormField {
  readonly name: string
  /** `Aspect ratio` */
  readonly label: string
  /** Description and limits; undefined if there are none. */
  readonly hint: string | undefined
  readonly schema: ParameterSchema
  readonly isRequired: boolean
  /** Allowed values; empty if any value of the type is allowed. */
  readonly choices: readonly Choice[]
  /** Default value of the model, as text; undefined if unknown. */
  readonly standard: string | undefined
}

export const SOURCES = 'image_urls'

export function fieldsOf(model: ModelDocument): readonly FormField[] {
  const { properties, required } = model.input
  const defaults = defaultsOf(model.input)
  const fields = Object.entries(properties).map(([name, schema]) => ({
    name,
    label: labelOf(name),
    hint:
      [descriptionOf(schema).replace(/\.$/, ''), limitsOf(schema)].filter(Boolean).join('. ') || undefined,
    schema,
    isRequired: required.includes(name),
    choices: choicesOf(schema),
    standard: Object.hasOwn(defaults, name) ? textOf(schema, defaults[name]) : undefined,
  }))
  return fields.toSorted((one, other) => rankOf(one) - rankOf(other))
}

/** The prompt comes first, wherever it is in the schema, and optional images last: they take the most space. */
const rankOf = ({ name, isRequired }: FormField): number =>
  name === 'prompt' ? 0 : isRequired ? 1 : name === SOURCES ? 3 : 2

const SWITCH: readonly Choice[] = [
  { value: 'true', label: 'On' },
  { value: 'false', label: 'Off' },
]

const choicesOf = (schema: ParameterSchema): readonly Choice[] =>
  schema.type === 'boolean'
    ? SWITCH
    : (listedValues(schema) ?? []).map((value) => ({ value, label: printable(value) }))

export function labelOf(name: string): string {
  if (name === SOURCES) return 'Reference images'
  return capitalized(name.replace(/[_.-]+/g, ' ').trim())
}

/** Documents that add parameters to the built-in ones have these texts, which would explain nothing here. */
const BUILT_IN: readonly string[] = [
  ...Object.values(MODEL_INPUTS).map(({ description }) => description),
  IMAGE_INPUT.properties.prompt.description,
]

/** Description of a model or a parameter; empty if there is none. */
export const descriptionOf = ({ description }: { readonly description: string }): string =>
  BUILT_IN.includes(description) ? '' : printable(description)

function limitsOf(schema: ParameterSchema): string {
  const { type } = schema
  if (type === 'array')
    return `One per line${schema.maxItems === undefined ? '' : `, at most ${schema.maxItems}`}`
  if (type === 'boolean' || listedValues(schema) !== undefined) return ''
  return type === 'string' && schema.maxLength === undefined ? '' : capitalized(describeType(schema))
}

/**
 * Field texts by parameter name. A list has one entry per line; a switch is `true` or `false`. Images are stored
 * separately. May have texts for parameters of other models, which are used when the user selects one of them again.
 */
export type Values = Readonly<Record<string, string>>

type RunInput = Readonly<Record<string, unknown>>

/** Returns the `input` of the create request. Omits empty fields, but sends a required one with its default. */
export function inputOf(model: ModelDocument, values: Values, sources: readonly string[]): RunInput {
  const entries = fieldsOf(model).flatMap(({ name, schema, isRequired, standard = '' }) => {
    if (name === SOURCES) return sources.length === 0 ? [] : [[name, sources] as const]
    const text = values[name]?.trim() ? values[name] : isRequired ? standard : ''
    return text === '' ? [] : [[name, valueOfField(schema, text)] as const]
  })
  return Object.fromEntries(entries)
}

function valueOfField(schema: ParameterSchema, text: string): unknown {
  if (schema.type === 'array') return text.split('\n').filter((line) => line.trim() !== '')
  if (schema.type !== 'other') return valueOfText(schema, schema.type === 'string' ? text : text.trim())
  const parsed = parseJson(text)
  return parsed.ok ? parsed.value : text
}

/** Returns a sentence for each parameter that the model does not accept: the checks of the API, and those of JSON. */
export function fieldProblems(model: ModelDocument, values: Values, sources: readonly string[]): Values {
  const json = Object.entries(model.input.properties).flatMap(([name, { type }]) => {
    const parsed = parseJson(values[name]?.trim() || 'null')
    if (type !== 'other' || (parsed.ok && findInexact(parsed.value) === undefined)) return []
    const message = parsed.ok ? 'has a number with more digits than JSON can send' : 'must be valid JSON'
    return [{ parameter: name, message }]
  })
  return messagesOf([...inputProblems(model.input, inputOf(model, values, sources)), ...json])
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

/**
 * Fills the form from a run, so that the user can create it again with changes. The values also have the parameters that
 * this model does not define: the user may select a model that does.
 */
export function filledForm({ input: { properties } }: ModelDocument, input: RunInput): FilledForm {
  const sources = Array.isArray(input[SOURCES]) ? (input[SOURCES] as readonly unknown[]) : []
  const values = Object.entries(input).filter(([name, value]) => name !== SOURCES && value != null)
  return {
    values: Object.fromEntries(values.map(([name, value]) => [name, textOf(properties[name], value)])),
    urls: sources.filter(isHttpUrl),
    lostImages: sources.filter((source) => !isHttpUrl(source)).length,
    unknown: Object.keys(input).filter((name) => !Object.hasOwn(properties, name)),
  }
}

/** The text of a field with this value. */
function textOf(schema: ParameterSchema | undefined, value: unknown): string {
  if (typeof value === 'string' && schema?.type !== 'other') return value
  return Array.isArray(value) && schema?.type !== 'other' ? value.join('\n') : printableJson(value, 2)
}

/** Leaves out the values that the model does not accept, except the prompt. Used when the user selects another model. */
export function valuesForModel(model: ModelDocument, values: Values): Values {
  const { prompt: _, ...refused } = fieldProblems(model, values, [])
  return Object.fromEntries(Object.entries(values).filter(([name]) => !Object.hasOwn(refused, name)))
}

/** Size in pixels of a rectangle with this ratio, scaled to fit 20 × 20. */
export function shapeOf(ratio: string): { readonly width: number; readonly height: number } {
  const [width = 1, height = 1] = ratio.split(':').map(Number)
  const scale = 20 / Math.max(width, height, 1)
  return { width: Math.round(width * scale), height: Math.round(height * scale) }
}
