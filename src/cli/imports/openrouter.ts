/** The models of OpenRouter: its lists name the values of each parameter, so a schema is made of them. Pure. */
import { isObject } from '../../protocol/parse.js'

type Json = Readonly<Record<string, unknown>>

const listIn = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
/** A parameter with these values, the first of which is sent where the price depends on it. Undefined without values. */
const choice = (values: unknown, isPriced = false): Json | undefined =>
  listIn(values).length === 0 ? undefined : { enum: values, ...(isPriced && { default: listIn(values)[0] }) }

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
  const cost = isVideo ? videoCost(found) : undefined
  const others = isVideo ? videoParameters(found, cost !== undefined) : imageParameters(found)
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
    cost,
  }
}

const videoParameters = (model: Json, isPriced: boolean): Readonly<Record<string, Json | undefined>> => ({
  duration: choice(model.supported_durations, isPriced),
  resolution: choice(model.supported_resolutions, isPriced),
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

/** The names of a price by the second, for one resolution or for all others. */
const BY_SECOND = /^(?:per-video-second|duration_seconds)(?:[-_](\d+[pk]))?$/i

/** The cost of a run in US dollars, if the model is charged by the second, alone or by resolution. */
function videoCost({
  pricing_skus: skus,
  supported_durations: durations,
  supported_resolutions,
}: Json): Json | undefined {
  const prices = new Map<string | undefined, number>()
  for (const [name, price] of Object.entries(isObject(skus) ? skus : {})) {
    const [found, resolution] = BY_SECOND.exec(name) ?? []
    if (found === undefined || !(Number(price) > 0)) return undefined
    prices.set(resolution?.toLowerCase(), Number(price))
  }
  const resolutions = listIn(supported_resolutions).map(String)
  const priceOf = (resolution: string | undefined) =>
    prices.get(resolution?.toLowerCase()) ?? prices.get(undefined)
  const run = prices.get(undefined) ?? priceOf(resolutions[0])
  if (run === undefined || listIn(durations).length === 0) return undefined
  if (resolutions.length === 0 ? prices.size > 1 : resolutions.some((each) => priceOf(each) === undefined))
    return undefined
  const bySize = resolutions
    .map((each) => [each, withSixDecimals(Number(priceOf(each)) / run)] as const)
    .filter(([, factor]) => factor !== 1)
  return {
    run: withSixDecimals(run),
    factors: {
      duration: Object.fromEntries(listIn(durations).map((each) => [String(each), Number(each)])),
      ...(bySize.length > 0 && { resolution: Object.fromEntries(bySize) }),
    },
    currency: 'USD',
  }
}

/** The highest cost of an image in US dollars, if those who serve the model charge nothing else. */
export function imageCost(value: unknown): Json | undefined {
  const lines = listIn(isObject(value) ? value.endpoints : undefined)
    .flatMap((each) => listIn(isObject(each) ? each.pricing : undefined))
    .filter(isObject)
    .filter(({ cost_usd: price }) => price !== 0)
  const run = withSixDecimals(Math.max(...lines.map(({ cost_usd: price }) => Number(price))))
  const isByImage = lines.every(({ billable, unit }) => billable === 'output_image' && unit === 'image')
  return isByImage && run > 0 ? { run, currency: 'USD' } : undefined
}

/** As a price in a document has. */
const withSixDecimals = (amount: number): number => Math.round(amount * 1e6) / 1e6
