/**
 * Width and height of a run: by its `aspect_ratio` from the map `sizes` of the engine (`"16:9": 1344x768`), else from a table. A
 * higher `quality` or `resolution` makes the sides longer.
 */
import { type Kind, listedValues, type ModelDocument } from '../../protocol/models.js'
import type { EngineSettings } from './settings.js'

const SIZE_PARAMETERS = ['aspect_ratio', 'resolution', 'quality']
/** The ratio of a run that sets none, and the number of which all sides are multiples. */
const STANDARD = { image: { ratio: '1:1', step: 64 }, video: { ratio: '16:9', step: 16 } } as const

export interface Size {
  readonly width: number
  readonly height: number
}

export interface Sizes {
  /** Parameters that only the size expresses. */
  readonly parameters: readonly string[]
  sizeOf(input: Readonly<Record<string, unknown>>): Size
}

/** Reports keys that are not ratios, and values that are not sizes. `sent`: parameters that are sent as they are. */
export function readSizes(
  settings: EngineSettings,
  { kind, input: { properties } }: ModelDocument,
  sent: readonly string[],
): Sizes {
  const { ratio: standard, step } = STANDARD[kind]
  const parameters = SIZE_PARAMETERS.filter((name) => Object.hasOwn(properties, name) && !sent.includes(name))
  const valuesOf = (name: string): readonly string[] =>
    (properties[name] && listedValues(properties[name])) ?? []
  const named = namedSizes(settings, parameters.includes('aspect_ratio') ? valuesOf('aspect_ratio') : [])
  return {
    parameters: parameters.filter((name) =>
      valuesOf(name).every((value) => named.has(value) || isInTable(kind, name, value)),
    ),
    sizeOf({ aspect_ratio: ratio = standard, resolution, quality }) {
      const size = named.get(String(ratio)) ?? sizeByTable(kind, String(ratio))
      const isHigh = parameters.includes('quality') && quality === 'high'
      const factor = kind === 'image' ? (isHigh ? 1.5 : 1) : linesOf(resolution) / STANDARD_LINES
      if (factor === 1) return size
      return { width: onGrid(size.width * factor, step), height: onGrid(size.height * factor, step) }
    },
  }
}

function namedSizes(settings: EngineSettings, ratios: readonly string[]): ReadonlyMap<string, Size> {
  const named = new Map<string, Size>()
  for (const [key, value] of Object.entries(settings.map('sizes'))) {
    const [, width, height] = /^(\d{2,4})x(\d{2,4})$/.exec(String(value)) ?? []
    if (!ratios.includes(key)) settings.report(['sizes', key], `"${key}" is not a value of aspect_ratio`)
    else if (width === undefined) settings.report(['sizes', key], 'must be a size, such as 1344x768')
    else named.set(key, { width: Number(width), height: Number(height) })
  }
  return named
}

export const sizeText = ({ width, height }: Size): string => `${width}x${height}`

/** Width by height of `16:9`. */
function shapeOf(ratio: string): number | undefined {
  const [, across, down] = /^(\d+(?:\.\d+)?):(\d+(?:\.\d+)?)$/.exec(ratio) ?? []
  const shape = Number(across) / Number(down)
  return shape > 0 && Number.isFinite(shape) ? shape : undefined
}

/** The lines of `720p`, which the sizes of videos are for. */
const STANDARD_LINES = 720
const LINES = /^(\d+)p$/
const linesOf = (resolution: unknown): number => Number(LINES.exec(`${resolution}`)?.[1] ?? STANDARD_LINES)

/** Whether a value changes the size without a key in `sizes`. */
function isInTable(kind: Kind, name: string, value: string): boolean {
  if (name === 'aspect_ratio') return shapeOf(value) !== undefined
  return name === 'resolution'
    ? kind === 'video' && LINES.test(value)
    : kind === 'image' && ['basic', 'high'].includes(value)
}

/** About one megapixel. With multiples of 64, the common ratios then have the sizes that SDXL was trained on. */
const IMAGE_PIXELS = 1_036_000

function sizeByTable(kind: Kind, ratio: string): Size {
  const { ratio: standard, step } = STANDARD[kind]
  const shape = shapeOf(ratio) ?? shapeOf(standard) ?? 1
  const short = kind === 'image' ? Math.sqrt(IMAGE_PIXELS / Math.max(shape, 1 / shape)) : STANDARD_LINES
  return {
    width: onGrid(shape < 1 ? short : short * shape, step),
    height: onGrid(shape < 1 ? short / shape : short, step),
  }
}

/** 1080 is not a multiple of 16: 1088. */
const onGrid = (pixels: number, step: number): number => Math.max(step, Math.round(pixels / step) * step)
