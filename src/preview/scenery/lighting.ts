// Lights a figure: all its colours become gradients from the light to the shade of the scene.
import { type Colour, hex, mix, parseHex } from '../colour.js'
import type { Palette } from '../palette.js'
import { svg } from './stage.js'

const COLOURS = /#[0-9a-f]{6}\b|#[0-9a-f]{3}\b/g
/** Luma factors of red, green and blue (BT.709). */
const LUMA = [0.2126, 0.7152, 0.0722] as const

/** A figure's box, and the side in it that the light comes from (it may be drawn mirrored). */
interface Lit {
  readonly id: string
  readonly width: number
  readonly height: number
  readonly fromRight: boolean
  /** How much haze is in front of it, 0 to 1. */
  readonly air: number
}

/**
 * Each colour becomes a gradient from lit to shaded across the whole figure, so that all its parts are lit from one side.
 */
export function inLight(drawing: string, palette: Palette, lit: Lit): string {
  const { id, width, height, fromRight } = lit
  const low = palette.hour !== 'day' && palette.hour !== 'grey'
  const [from, to] = fromRight ? [width, 0] : [0, width]
  const place = svg`gradientUnits="userSpaceOnUse" x1="${from}" y1="${height * 0.2}" x2="${to}" y2="${height * 0.62}"`
  const runs = new Map<string, string>()
  const painted = drawing.replace(COLOURS, (text) => {
    const name = `${id}-${text.slice(1)}`
    if (!runs.has(name)) {
      const shade = parseHex(tinted(text, palette, lit.air))
      const stops = [
        [0, mix(shade, palette.light, low ? 0.3 : 0.2)],
        [0.4, shade],
        [0.55, shade],
        // White in deep shade would be grey.
        [1, mix(shade, palette.front, (low ? 0.42 : 0.26) * (1 - 0.6 * whiteness(parseHex(text))))],
      ] as const
      const list = stops
        .map(([offset, each]) => `<stop offset="${offset}" stop-color="${hex(each)}"/>`)
        .join('')
      runs.set(name, `<linearGradient id="${name}" ${place}>${list}</linearGradient>`)
    }
    return `url(#${name})`
  })
  return [...runs.values()].join('') + painted
}

/** A colour multiplied with the scene's light, with haze. */
function tinted(text: string, palette: Palette, air: number): string {
  const ambient = channels(hex(palette.ambient))
  const haze = channels(hex(palette.far))
  const own = channels(hex(parseHex(text)))
  const grey = own.reduce((sum, value, index) => sum + value * (LUMA[index] ?? 0), 0)
  const kept = 0.5 * whiteness(parseHex(text))
  const seen = own.map((value, index) => {
    const share = ambient[index] ?? 1
    const lit = (palette.isMonochrome ? grey : value) * (share + (1 - share) * kept)
    return lit + ((haze[index] ?? 0) - lit) * air
  })
  return `#${seen
    .map((value) =>
      Math.round(value * 255)
        .toString(16)
        .padStart(2, '0'),
    )
    .join('')}`
}

/** From 0 to 1 for a shade from light grey to white. */
const whiteness = ({ lightness, chroma }: Colour): number =>
  chroma > 0.04 ? 0 : Math.min(1, Math.max(0, (lightness - 0.75) / 0.2))

/** A drawing in one colour, for shadows, reflections and lit edges. */
export function silhouette(drawing: string, shade: Colour): string {
  return drawing.replace(COLOURS, hex(shade))
}

function channels(text: string): readonly number[] {
  return [1, 3, 5].map((at) => Number.parseInt(text.slice(at, at + 2), 16) / 255)
}
