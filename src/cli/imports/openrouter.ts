/** The models of OpenRouter: its lists name the values of each parameter, so a schema is made of them. Pure. */
import { isObject } from '../../protocol/parse.js'

type Json = Readonly<Record<string, unknown>>

const listIn = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
/** A parameter with these values. Undefined without values. */
const choice = (values: unknown): Json | undefined =>
  listIn(values).length === 0 ? undefined : { enum: values }

const IMAGE = { type: 'string', media: 'image' }
const IMAGES = { type: 'array', items: { type: 'string' }, media: 'image' }

/** Returns what the entry of a model in a list, or the list that has it, says. Undefined for another answer. */
export function readOpenRouter(value: unknown, model: string) {
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
  const { description } = found
  return {
    root: {},
    input: { type: 'object', required: ['prompt'], properties },
    category: isVideo ? 'text-to-video' : 'text-to-image',
    description: typeof description === 'string' && description !== '' ? description : undefined,
    version: undefined,
    isOfficial: true,
    example: undefined,
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
