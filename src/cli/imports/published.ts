/** What fal, Replicate and OpenRouter publish of a model. Pure. */
import { writeJson } from '../../protocol/json.js'
import { KINDS, type Kind } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'

export type Json = Readonly<Record<string, unknown>>

export interface ModelAddress {
  readonly provider: 'fal' | 'replicate' | 'openrouter'
  /** The endpoint of fal, or `owner/name`. */
  readonly model: string
  readonly version: string | undefined
}

/** A published schema. */
export interface Published {
  /** The document that `$ref` points into. */
  readonly root: Json
  readonly input: Json
  /** fal: `text-to-image`. */
  readonly category: unknown
  readonly version?: string | undefined
  /** Replicate: an official model has no versions to pin. */
  readonly isOfficial?: boolean
  /** Output of the provider's example. */
  readonly example?: unknown
}

/**
 * Reads an OpenAPI document of fal, of Replicate or of a Cog server, or the object of the provider's API that has one.
 * Undefined if there is none in it.
 */
export function readPublished(value: unknown, { provider, model }: ModelAddress): Published | undefined {
  if (provider === 'openrouter') return readOpenRouter(value, model)
  const outer = isObject(value) ? value : {}
  const version = isObject(outer.latest_version) ? outer.latest_version : outer
  const root = isObject(version.openapi_schema) ? version.openapi_schema : outer
  const input = provider === 'fal' ? falInput(root, model) : schemasIn(root).Input
  if (!isObject(input)) return undefined
  const info = isObject(root.info) ? root.info : {}
  const metadata = isObject(info['x-fal-metadata']) ? info['x-fal-metadata'] : {}
  return {
    root,
    input,
    category: metadata.category,
    version: typeof version.id === 'string' ? version.id : undefined,
    isOfficial: outer.is_official === true,
    example: isObject(outer.default_example) ? outer.default_example.output : undefined,
  }
}

const schemasIn = ({ components }: Json): Json =>
  isObject(components) && isObject(components.schemas) ? components.schemas : {}

/** The schema of the endpoint's own request, else one that is named so. */
function falInput(root: Json, endpoint: string): unknown {
  const own = [
    'paths',
    `/${endpoint}`,
    'post',
    'requestBody',
    'content',
    'application/json',
    'schema',
  ].reduce<unknown>((at, step) => (isObject(at) ? at[step] : undefined), root)
  return own ?? Object.entries(schemasIn(root)).find(([name]) => name.endsWith('Input'))?.[1]
}

const FILES: Readonly<Record<Kind, RegExp>> = {
  video: /\.(mp4|webm|mov|m4v)\b/i,
  image: /\.(png|jpe?g|webp|gif|avif)\b/i,
}

/** Returns what a model creates, by its category or by the files of its example. Undefined for anything else. */
export function kindOf({ category, example }: Published): Kind | undefined {
  if (typeof category === 'string') return KINDS.find((kind) => category.endsWith(`-to-${kind}`))
  const shown = writeJson(example ?? null)
  return KINDS.find((kind) => FILES[kind].test(shown))
}

const listIn = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
/** A parameter with these values. Undefined without values. */
const choice = (values: unknown): Json | undefined =>
  listIn(values).length === 0 ? undefined : { enum: values }

const IMAGE = { type: 'string', media: 'image' }
const IMAGES = { type: 'array', items: { type: 'string' }, media: 'image' }

/**
 * Reads the entry of a model in a list of OpenRouter, or the list that has it. The lists name the values of each parameter,
 * so a schema is made of them. Undefined for another answer.
 */
function readOpenRouter(value: unknown, model: string): Published | undefined {
  const found =
    isObject(value) && Array.isArray(value.data)
      ? value.data.find((each) => isObject(each) && each.id === model)
      : value
  if (!isObject(found) || found.id !== model) return undefined
  const isVideo = !isObject(found.supported_parameters)
  const others = isVideo ? videoParameters(found) : imageParameters(found)
  const properties = Object.fromEntries(
    Object.entries({ prompt: { type: 'string' }, ...others }).filter(([, each]) => each !== undefined),
  )
  return {
    root: {},
    input: { type: 'object', required: ['prompt'], properties },
    category: isVideo ? 'text-to-video' : 'text-to-image',
  }
}

const videoParameters = (model: Json): Readonly<Record<string, Json | undefined>> => ({
  duration: choice(model.supported_durations),
  resolution: choice(model.supported_resolutions),
  aspect_ratio: choice(model.supported_aspect_ratios),
  generate_audio: model.generate_audio === true ? { type: 'boolean' } : undefined,
  seed: model.seed === true ? { type: 'integer', minimum: 0 } : undefined,
  ...Object.fromEntries(listIn(model.supported_frame_images).map((name) => [name, IMAGE])),
})

function imageParameters({
  supported_parameters: all,
  architecture,
}: Json): Readonly<Record<string, Json | undefined>> {
  const inputs = isObject(architecture) ? listIn(architecture.input_modalities) : []
  const named = Object.entries(isObject(all) ? all : {}).map(([name, each]) => [
    name,
    parameterOf(name, each),
  ])
  return { ...(inputs.includes('image') && { input_references: IMAGES }), ...Object.fromEntries(named) }
}

function parameterOf(name: string, described: unknown): Json | undefined {
  const { type, values, min, max } = isObject(described) ? described : {}
  const bounds = {
    ...(typeof min === 'number' && { minimum: min }),
    ...(typeof max === 'number' && { maximum: max }),
  }
  if (name === 'input_references') return { ...IMAGES, ...(typeof max === 'number' && { maxItems: max }) }
  // One run is one picture.
  if (/^(n|prompt|model|stream)$/.test(name)) return undefined
  // Its list says only that it takes one.
  if (name === 'seed') return { type: 'integer', minimum: 0 }
  if (type === 'enum') return choice(values)
  return type === 'range' ? { type: 'integer', ...bounds } : {}
}
