/**
 * Width and height of a run: from the map `sizes` of the engine, else from a table. Its keys are values of
 * `aspect_ratio`, `resolution` and `quality`: `"16:9": 1344x768`, or more exactly `"16:9 1080p"`, `"1:1 high"`.
 */
import type { Kind, ModelDocument } from '../../protocol/models.js'
import { listedValues } from '../../protocol/parameters.js'
import type { EngineSettings } from './settings.js'

/** The parameters that decide the size of a run. */
const SIZE_PARAMETERS = ['aspect_ratio', 'resolution', 'quality'] as const

/** Values of a run that sets none, where the model has them. */
const STANDARD: Readonly<Record<Kind, Readonly<Record<(typeof SIZE_PARAMETERS)[number], string>>>> = {
  image: { aspect_ratio: '1:1', resolution: '', quality: 'basic' },
  video: { aspect_ratio: '16:9', resolution: '720p', quality: '' },
}

export interface Size {
  readonly width: number
  readonly height: number
}

export interface Sizes {
  /** Parameters that only the size expresses. */
  readonly parameters: readonly string[]
  sizeOf(input: Readonly<Record<string, unknown>>): Size
}

/** The size of runs with all of these values. */
interface NamedSize {
  readonly words: readonly string[]
  readonly size: Size
}

/**
 * Reports keys that name no value, and values that are not sizes. `sent`: parameters that are sent as they are. `own`: the
 * size that a run without `aspect_ratio` has if the document has no `sizes`; other ratios have as many pixels.
 */
export function readSizes(
  settings: EngineSettings,
  { kind, input }: ModelDocument,
  sent: readonly string[],
  own?: Size,
): Sizes {
  const parameters = SIZE_PARAMETERS.filter(
    (name) => Object.hasOwn(input.properties, name) && !sent.includes(name),
  )
  const valuesOf = (name: string): readonly string[] => {
    const schema = input.properties[name]
    return (schema && listedValues(schema)) ?? []
  }
  const known = parameters.flatMap(valuesOf)
  const named: NamedSize[] = []
  for (const [key, value] of Object.entries(settings.map('sizes'))) {
    const [, width, height] = /^(\d{2,4})x(\d{2,4})$/.exec(String(value)) ?? []
    const words = key.split(' ')
    const unknown = words.find((word) => !known.includes(word))
    if (unknown !== undefined)
      settings.report(
        ['sizes', key],
        `"${unknown}" is not a value of ${parameters.join(', ') || 'the input'}`,
      )
    else if (width === undefined) settings.report(['sizes', key], 'must be a size, such as 1344x768')
    else named.push({ words, size: { width: Number(width), height: Number(height) } })
  }
  if (own !== undefined && named.length === 0) {
    const { ratio, sizes } = sizesLike(kind, own, valuesOf('aspect_ratio'))
    const { resolution } = STANDARD[kind]
    const lines = valuesOf('resolution').includes(resolution) ? [resolution] : []
    named.push({ words: [], size: own })
    for (const each of sizes) named.push({ words: [each.ratio, ...lines], size: each.size })
    const { aspect_ratio: schema } = input.properties
    if (ratio !== undefined && schema?.type === 'string')
      settings.offer('aspect_ratio', { ...schema, default: ratio })
  }
  const words = named.flatMap((each) => each.words)
  return {
    parameters: parameters.filter((name) =>
      valuesOf(name).every((value) => words.includes(value) || isInTable(kind, name, value)),
    ),
    sizeOf(run) {
      const values = parameters.map((name) => {
        const standard = STANDARD[kind][name]
        return String(run[name] ?? (valuesOf(name).includes(standard) ? standard : ''))
      })
      // The key that names most of the run's values.
      const [found] = named
        .filter((each) => each.words.every((word) => values.includes(word)))
        .toSorted((one, other) => other.words.length - one.words.length)
      const { width, height } =
        found?.size ?? sizeByTable(kind, String(run.aspect_ratio ?? ''), String(run.resolution ?? ''))
      const quality = parameters.includes('quality') ? String(run.quality) : ''
      const isFactor = isInTable(kind, 'quality', quality) && !found?.words.includes(quality)
      const factor = isFactor ? (QUALITY_FACTORS[quality] ?? 1) : 1
      return factor === 1
        ? { width, height }
        : { width: onGrid(width * factor, 64), height: onGrid(height * factor, 64) }
    },
  }
}

interface SizesLike {
  /** The ratio that is nearest to the size. */
  readonly ratio: string | undefined
  readonly sizes: readonly { readonly ratio: string; readonly size: Size }[]
}

/** Returns a size for each ratio with as many pixels as `own`, which the nearest ratio has itself. */
export function sizesLike(kind: Kind, own: Size, ratios: readonly string[]): SizesLike {
  const shapes = ratios.flatMap((ratio) => {
    const [, across, down] = RATIO.exec(ratio) ?? []
    const shape = Number(across) / Number(down)
    return shape > 0 && Number.isFinite(shape) ? [{ ratio, shape }] : []
  })
  const distance = ({ shape }: { readonly shape: number }) =>
    Math.abs(Math.log((shape * own.height) / own.width))
  const [nearest] = shapes.toSorted((one, other) => distance(one) - distance(other))
  const step = kind === 'image' ? 64 : 16
  const area = own.width * own.height
  const sizes = shapes.map(({ ratio, shape }) => ({
    ratio,
    size:
      ratio === nearest?.ratio
        ? own
        : { width: onGrid(Math.sqrt(area * shape), step), height: onGrid(Math.sqrt(area / shape), step) },
  }))
  return { ratio: nearest?.ratio, sizes }
}

export const sizeText = ({ width, height }: Size): string => `${width}x${height}`

/** Of each side, for the built-in values of `quality` that `sizes` does not name. */
const QUALITY_FACTORS: Readonly<Record<string, number>> = { basic: 1, high: 1.5 }

const RATIO = /^(\d+(?:\.\d+)?):(\d+(?:\.\d+)?)$/
const LINES = /^(\d+)p$/

/** Whether a value changes the size without a key in `sizes`. */
function isInTable(kind: Kind, name: (typeof SIZE_PARAMETERS)[number], value: string): boolean {
  if (name === 'aspect_ratio') return RATIO.test(value)
  if (name === 'resolution') return kind === 'video' && LINES.test(value)
  return kind === 'image' && Object.hasOwn(QUALITY_FACTORS, value)
}

/** Sizes that SDXL was trained on: about one megapixel, on multiples of 64, which every image model accepts. */
const IMAGE_SIZES: Readonly<Record<string, Size>> = {
  '1:1': { width: 1024, height: 1024 },
  '3:2': { width: 1216, height: 832 },
  '4:3': { width: 1152, height: 896 },
  '16:9': { width: 1344, height: 768 },
  '21:9': { width: 1536, height: 640 },
}
const IMAGE_PIXELS = 1_048_576

function sizeByTable(kind: Kind, aspectRatio: string, resolution: string): Size {
  const [, across = '1', down = '1'] = RATIO.exec(aspectRatio || STANDARD[kind].aspect_ratio) ?? []
  const ratio = Number(across) / Number(down) || 1
  if (ratio < 1) {
    const { width, height } = sizeByTable(kind, `${down}:${across}`, resolution)
    return { width: height, height: width }
  }
  if (kind === 'image') {
    const width = onGrid(Math.sqrt(IMAGE_PIXELS * ratio), 64)
    return IMAGE_SIZES[`${across}:${down}`] ?? { width, height: onGrid(Math.sqrt(IMAGE_PIXELS / ratio), 64) }
  }
  // 1080 is not a multiple of 16: 1920x1088.
  const lines = Number(LINES.exec(resolution)?.[1] ?? 720)
  return { width: onGrid(lines * ratio, 16), height: Math.ceil(lines / 16) * 16 }
}

const onGrid = (pixels: number, step: number): number => Math.max(step, Math.round(pixels / step) * step)
