/**
 * The two published models and their inputs, once, as JSON Schema. Flags, help, completion, the batch manifest,
 * `rushes models` and the local service are projections of these objects, and the TypeScript types are derived
 * from them: a parameter is one line here and nowhere else.
 *
 * Source: the interface's sections 2.3 and 2.4. What it leaves open stays open: no length limits, and a field
 * that is not named here is no error.
 */

interface StringSchema {
  readonly type: 'string'
  readonly description: string
  readonly enum?: readonly string[]
}

interface StringListSchema {
  readonly type: 'array'
  readonly description: string
  readonly items: { readonly type: 'string' }
  readonly maxItems?: number
}

export type ParameterSchema = StringSchema | StringListSchema

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
    quality: { type: 'string', enum: ['basic', 'high'], description: 'size and care' },
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
    : string

type InputOf<Schema extends ModelSchema> = {
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

/** An input object as it travels: schema-checked for the two published models, anything for another one. */
export type ModelInput = Readonly<Record<string, unknown>>

/** `<provider>/<model_name>`: two non-empty parts. What else a name may hold is not published. */
export const isModelName = (text: string): boolean => /^[^/\s]+\/\S+$/.test(text)
