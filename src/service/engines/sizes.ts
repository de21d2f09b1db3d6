/**
 * Width and height of a run: from the map `sizes` of the engine, else from a table. Its keys are values of
 * `aspect_ratio`, `resolution` and `quality`: `"16:9": 1344x768`, or more exactly `"16:9 1080p"`, `"1:1 high"`.
 */
import { type Kind, listedValues, type ModelDocument } from '../../protocol/models.js'
import type { EngineSettings } from './settings.js'

/** The parameters that decide the size of a run, with their values for a run that sets none. */
const STANDARD = {
  image: { aspect_ratio: '1:1', resolution: '', quality: 'basic' },
  video: { aspect_ratio: '16:9', resolution: '720p', quality: '' },
} as const
type SizeParameter = keyof typeof STANDARD.image
const SIZE_PARAMETERS = Object.keys(STANDARD.image) as readonly SizeParameter[]

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

/** Reports keys that name no value, and values that are not sizes. `sent`: parameters that are sent as they are. */
export function readSizes(
  settings: EngineSettings,
  { kind, input: { properties } }: ModelDocument,
  sent: readonly string[],
): Sizes {
  const standard = STANDARD[kind]
  const parameters = SIZE_PARAMETERS.filter((name) => Object.hasOwn(properties, name) && !sent.includes(name))
  const valuesOf = (name: string): readonly string[] =>
    (properties[name] && listedValues(properties[name])) ?? []
  const named = namedSizes(settings, parameters, parameters.flatMap(valuesOf))
  const words = named.flatMap((each) => each.words)
  return {
    parameters: parameters.filter((name) =>
      valuesOf(name).every((value) => words.includes(value) || isInTable(kind, name, value)),
    ),
    sizeOf(run) {
      const chosenValue = (name: SizeParameter): string =>
        String(run[name] ?? valuesOf(name).find((value) => value === standard[name]) ?? '')
      const values = parameters.map(chosenValue)
      // The key that names most of the run's values.
      const [found] = named
        .filter((each) => each.words.every((word) => values.includes(word)))
        .toSorted((one, other) => other.words.length - one.words.length)
      const size = found?.size ?? sizeByTable(kind, chosenValue('aspect_ratio'), chosenValue('resolution'))
      const quality = parameters.includes('quality') ? String(run.quality) : ''
      if (kind !== 'image' || quality !== 'high' || found?.words.includes(quality)) return size
      return { width: onGrid(size.width * 1.5, 64), height: onGrid(size.height * 1.5, 64) }
    },
  }
}

function namedSizes(
  settings: EngineSettings,
  parameters: readonly string[],
  values: readonly string[],
): NamedSize[] {
  const named: NamedSize[] = []
  for (const [key, value] of Object.entries(settings.map('sizes'))) {
    const [, width, height] = /^(\d{2,4})x(\d{2,4})$/.exec(String(value)) ?? []
    const words = key.split(' ')
    const unknown = words.find((word) => !values.includes(word))
    if (unknown !== undefined)
      settings.report(
        ['sizes', key],
        `"${unknown}" is not a value of ${parameters.join(', ') || 'the input'}`,
      )
    else if (width === undefined) settings.report(['sizes', key], 'must be a size, such as 1344x768')
    else named.push({ words, size: { width: Number(width), height: Number(height) } })
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

const LINES = /^(\d+)p$/

/** Whether a value changes the size without a key in `sizes`. */
function isInTable(kind: Kind, name: string, value: string): boolean {
  if (name === 'aspect_ratio') return shapeOf(value) !== undefined
  return name === 'resolution'
    ? kind === 'video' && LINES.test(value)
    : kind === 'image' && ['basic', 'high'].includes(value)
}

/** About one megapixel. With multiples of 64, the common ratios then have the sizes that SDXL was trained on. */
const IMAGE_PIXELS = 1_036_000

function sizeByTable(kind: Kind, aspectRatio: string, resolution: string): Size {
  const shape = shapeOf(aspectRatio) ?? shapeOf(STANDARD[kind].aspect_ratio) ?? 1
  if (kind === 'image') return sizeOfArea(IMAGE_PIXELS, shape, 64)
  // 1080 is not a multiple of 16: 1920x1088.
  const lines = Number(LINES.exec(resolution)?.[1] ?? 720)
  const long = onGrid(lines * Math.max(shape, 1 / shape), 16)
  const short = Math.ceil(lines / 16) * 16
  return shape < 1 ? { width: short, height: long } : { width: long, height: short }
}

const sizeOfArea = (area: number, shape: number, step: number): Size => ({
  width: onGrid(Math.sqrt(area * shape), step),
  height: onGrid(Math.sqrt(area / shape), step),
})

const onGrid = (pixels: number, step: number): number => Math.max(step, Math.round(pixels / step) * step)
