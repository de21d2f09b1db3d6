/**
 * Models as documents: a name, a kind, the JSON Schema of the input, and a price where one is known. Flags, help,
 * checks, completion, manifests, MCP tools, the console's form and the local service are all derived from a document.
 * The inputs of the two published models are the built-in schemas of their kinds.
 *
 * Source of the built-in schemas: sections 2.3 and 2.4 of the interface. It defines no length limits and allows unknown
 * fields, and so do these schemas.
 */

import { integerOf } from './json.js'
import type { MediaType } from './media.js'

interface Described {
  readonly description: string
  /** What a string or the strings of a list are, where name and format do not tell it. False: plain text. See `media.ts`. */
  readonly media?: MediaType | false
}

interface StringSchema extends Described {
  readonly type: 'string'
  readonly enum?: readonly string[]
  /** In characters (code points). */
  readonly maxLength?: number
  readonly default?: string
}

interface NumberSchema extends Described {
  /** An `integer` is a number without a fraction. */
  readonly type: 'integer' | 'number'
  /** A BigInt only for an integer that a number cannot hold, as in inputs: see `json.ts`. */
  readonly enum?: readonly (number | bigint)[]
  readonly minimum?: number | bigint
  readonly maximum?: number | bigint
  readonly default?: number | bigint
}

interface BooleanSchema extends Described {
  readonly type: 'boolean'
  readonly default?: boolean
}

interface StringListSchema extends Described {
  readonly type: 'array'
  readonly items: { readonly type: 'string'; readonly enum?: readonly string[] }
  readonly maxItems?: number
  readonly default?: readonly string[]
}

/** A property of another type. It has no flag and no check; `--input` and manifests can set it. */
export interface OtherSchema extends Described {
  readonly type: 'other'
  /** The schema as the document has it. */
  readonly json: unknown
}

export type ParameterSchema = StringSchema | NumberSchema | BooleanSchema | StringListSchema | OtherSchema

export interface ModelSchema {
  readonly type: 'object'
  readonly title: string
  readonly description: string
  readonly required: readonly string[]
  readonly properties: Readonly<Record<string, ParameterSchema>>
}

export interface ModelDocument {
  /** `<provider>/<model_name>` */
  readonly name: string
  readonly kind: Kind
  readonly input: ModelSchema
  /** Undefined if the price is not known. It is then never counted as 0. */
  readonly price?: Price | undefined
  /**
   * What the provider behind the engine charges the operator of the local service for a run; `unknown` if it charges an
   * amount that the document does not have. Undefined if runs cost nothing. Never part of a service's list.
   */
  readonly cost?: Cost | 'unknown' | undefined
  /** Whether the service names it as the default model of its kind. */
  readonly default?: boolean | undefined
}

/** The price of a run: `run`, times one factor for each parameter whose value has one. At most six decimals each. */
export interface Price {
  readonly run: number
  /** By parameter, and by the value as text: `{ "resolution": { "1080p": 2 } }`. */
  readonly factors: Readonly<Record<string, Readonly<Record<string, number>>>>
  /** Whether the price of a run is rounded up to a whole number. */
  readonly round_up?: boolean
}

/** The form of a price, with the currency of the provider. */
export interface Cost extends Price {
  readonly currency: string
}

export const VIDEO_INPUT = {
  type: 'object',
  title: 'video',
  description: 'Text-to-video and image-to-video, with multi-shot transitions, at 720p and 1080p',
  required: ['prompt'],
  properties: {
    prompt: { type: 'string', description: 'Text of the prompt' },
    aspect_ratio: {
      type: 'string',
      enum: ['16:9', '9:16', '4:3', '3:4', '1:1', '21:9'],
      description: 'Width to height',
    },
    resolution: { type: 'string', enum: ['720p', '1080p'], description: 'Lines on the shorter side' },
    duration: { type: 'string', enum: ['5', '10'], description: 'Length in seconds' },
    image_urls: {
      type: 'array',
      items: { type: 'string' },
      description: 'Source image for image-to-video',
    },
  },
} as const satisfies ModelSchema

export const IMAGE_INPUT = {
  type: 'object',
  title: 'image',
  description: 'Text-to-image and image editing, up to 4K, with up to 14 reference images',
  required: ['prompt'],
  properties: {
    prompt: { type: 'string', description: 'Text of the prompt' },
    aspect_ratio: {
      type: 'string',
      enum: ['1:1', '2:3', '3:2', '3:4', '4:3', '9:16', '16:9', '21:9'],
      description: 'Width to height',
    },
    quality: { type: 'string', enum: ['basic', 'high'], description: 'Quality and size' },
    image_urls: {
      type: 'array',
      items: { type: 'string' },
      maxItems: 14,
      description: 'Reference image to edit or to follow',
    },
  },
} as const satisfies ModelSchema

/** The schemas of both models, by kind. */
export const MODEL_INPUTS = { video: VIDEO_INPUT, image: IMAGE_INPUT } as const

export type Kind = keyof typeof MODEL_INPUTS
export const KINDS = Object.keys(MODEL_INPUTS) as readonly Kind[]

type ValueOf<Schema> = Schema extends { enum: readonly (infer Value)[] }
  ? Value
  : Schema extends { type: 'array' }
    ? readonly string[]
    : Schema extends { type: 'boolean' }
      ? boolean
      : Schema extends { type: 'integer' | 'number' }
        ? number
        : string

/** The TypeScript type of the inputs that a schema accepts. */
export type InputOf<Schema extends ModelSchema> = {
  readonly [Name in keyof Schema['properties'] as Name extends Schema['required'][number]
    ? Name
    : never]: ValueOf<Schema['properties'][Name]>
} & {
  readonly [Name in keyof Schema['properties'] as Name extends Schema['required'][number]
    ? never
    : Name]?: ValueOf<Schema['properties'][Name]>
}

/** Input of the video model, derived from its schema. */
export type VideoInput = InputOf<typeof VIDEO_INPUT>
/** Input of the image model, derived from its schema. */
export type ImageInput = InputOf<typeof IMAGE_INPUT>

/**
 * An input as it is sent. Inputs of the two published models are checked against their schemas; for other models any
 * object is allowed.
 */
export type ModelInput = Readonly<Record<string, unknown>>

/** Checks the form `<provider>/<model_name>`: two non-empty parts. The interface has no other rules for names. */
export const isModelName = (text: string): boolean => /^[^/\s]+\/\S+$/.test(text)

/** All parameters of both built-in schemas, in their order. */
export const PARAMETER_NAMES: readonly string[] = [
  ...new Set(KINDS.flatMap((kind) => Object.keys(MODEL_INPUTS[kind].properties))),
]

/** The built-in schema of a kind. */
export const builtInSchema = (kind: Kind): ModelSchema => MODEL_INPUTS[kind]

/** Returns the allowed values of a schema as text; undefined without a list. */
export const listedValues = (schema: ParameterSchema): readonly string[] | undefined =>
  'enum' in schema && schema.enum !== undefined ? schema.enum.map(String) : undefined

/** Describes the allowed values of a parameter, joined by `separator`. */
export function describeValues(schema: ParameterSchema, separator: string): string {
  if (schema.type === 'array') {
    const listed = schema.items.enum === undefined ? '' : `: ${schema.items.enum.join(separator)}`
    return `repeatable${schema.maxItems === undefined ? '' : `, at most ${schema.maxItems}`}${listed}`
  }
  return listedValues(schema)?.join(separator) ?? describeType(schema)
}

/** Describes the type of a parameter: `a whole number from 0 to 10`. */
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
      return schema.maxLength === undefined ? 'text' : `text of at most ${schema.maxLength} characters`
    case 'other':
      return 'JSON'
  }
}

interface Bounds {
  readonly minimum?: number | bigint
  readonly maximum?: number | bigint
}

function describeBounds({ minimum, maximum }: Bounds): string {
  if (minimum === undefined) return maximum === undefined ? '' : ` up to ${maximum}`
  return maximum === undefined ? ` from ${minimum}` : ` from ${minimum} to ${maximum}`
}

const WHOLE_NUMBER = /^-?\d+$/
const NUMBER = /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i

/**
 * Converts the text of a flag or CSV cell to the type of the schema. Returns the text unchanged if it is invalid, or an
 * integer beyond 64 bits, which would lose digits: validation then reports it with the same message as an invalid value in
 * `--input`.
 */
export function valueOfText({ type }: ParameterSchema, text: string): string | number | bigint | boolean {
  if (type === 'boolean') return /^true$/i.test(text) ? true : /^false$/i.test(text) ? false : text
  if (type !== 'integer' && type !== 'number') return text
  if (WHOLE_NUMBER.test(text)) return integerOf(text) ?? text
  return type === 'number' && NUMBER.test(text) && Number.isFinite(Number(text)) ? Number(text) : text
}

/**
 * Returns the path (names, and positions in lists) of the first number that a JSON parser may have changed; undefined
 * if none was.
 */
export function findInexact(value: unknown): readonly string[] | undefined {
  if (typeof value === 'number') return isUnchanged(value) ? undefined : []
  if (typeof value !== 'object' || value === null) return undefined
  for (const [name, each] of Object.entries(value)) {
    const found = findInexact(each)
    if (found !== undefined) return [name, ...found]
  }
  return undefined
}

const isUnchanged = (value: number): boolean =>
  Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value))

/** Returns the JSON Schema of a parameter, as the document has it. */
export const parameterJson = (schema: ParameterSchema): unknown =>
  schema.type === 'other' ? schema.json : schema
