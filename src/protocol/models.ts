/**
 * The inputs of the two published models as JSON Schema. Flags, help, completion, the batch manifest, `rushes models`
 * and the local service are projections of these objects, and the TypeScript types are derived from them: a parameter
 * is one property here and nowhere else.
 *
 * Source: sections 2.3 and 2.4 of the interface. What it leaves open stays open: there are no length limits, and
 * unknown fields are allowed.
 */

interface StringSchema {
  readonly type: 'string'
  readonly description: string
  readonly enum?: readonly string[]
}

interface NumberSchema {
  /** An `integer` is a number without a fraction. */
  readonly type: 'integer' | 'number'
  readonly description: string
  readonly enum?: readonly number[]
  readonly minimum?: number
  readonly maximum?: number
}

interface BooleanSchema {
  readonly type: 'boolean'
  readonly description: string
}

interface StringListSchema {
  readonly type: 'array'
  readonly description: string
  readonly items: { readonly type: 'string' }
  readonly maxItems?: number
}

export type ParameterSchema = StringSchema | NumberSchema | BooleanSchema | StringListSchema

export interface ModelSchema {
  readonly type: 'object'
  readonly title: string
  readonly description: string
  readonly required: readonly string[]
  readonly properties: Readonly<Record<string, ParameterSchema>>
}

export const VIDEO_INPUT = {
  type: 'object',
  title: 'video',
  description: 'Text-to-video and image-to-video, with multi-shot transitions, at 720p and 1080p.',
  required: ['prompt'],
  properties: {
    prompt: { type: 'string', description: 'what to show' },
    aspect_ratio: {
      type: 'string',
      enum: ['16:9', '9:16', '4:3', '3:4', '1:1', '21:9'],
      description: 'width to height',
    },
    resolution: { type: 'string', enum: ['720p', '1080p'], description: 'lines on the shorter side' },
    duration: { type: 'string', enum: ['5', '10'], description: 'length in seconds' },
    image_urls: {
      type: 'array',
      items: { type: 'string' },
      description: 'source image for image-to-video',
    },
  },
} as const satisfies ModelSchema

export const IMAGE_INPUT = {
  type: 'object',
  title: 'image',
  description: 'Text-to-image and image editing, up to 4K, with up to 14 reference images.',
  required: ['prompt'],
  properties: {
    prompt: { type: 'string', description: 'what to show' },
    aspect_ratio: {
      type: 'string',
      enum: ['1:1', '2:3', '3:2', '3:4', '4:3', '9:16', '16:9', '21:9'],
      description: 'width to height',
    },
    quality: { type: 'string', enum: ['basic', 'high'], description: 'quality and size' },
    image_urls: {
      type: 'array',
      items: { type: 'string' },
      maxItems: 14,
      description: 'reference image to edit or to follow',
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

/** The TypeScript type of what a schema accepts. */
export type InputOf<Schema extends ModelSchema> = {
  readonly [Name in keyof Schema['properties'] as Name extends Schema['required'][number]
    ? Name
    : never]: ValueOf<Schema['properties'][Name]>
} & {
  readonly [Name in keyof Schema['properties'] as Name extends Schema['required'][number]
    ? never
    : Name]?: ValueOf<Schema['properties'][Name]>
}

/** What the video model takes, as its schema says. */
export type VideoInput = InputOf<typeof VIDEO_INPUT>
/** What the image model takes, as its schema says. */
export type ImageInput = InputOf<typeof IMAGE_INPUT>

/** An input as it is sent: checked by the schema for the two published models, any object for another one. */
export type ModelInput = Readonly<Record<string, unknown>>

/** `<provider>/<model_name>`: two non-empty parts. The interface says no more about names. */
export const isModelName = (text: string): boolean => /^[^/\s]+\/\S+$/.test(text)
