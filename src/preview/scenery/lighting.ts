// Lights a figure: replaces its colours by gradients from the lit side to the shaded side, multiplied with the scene's
// light, and adds haze with distance. Rewrites the colours of the SVG, because SVG filters look the same but take 100
// to 300 ms per figure at 1080p: each step of a filter is a bitmap of the whole canvas.
import { type Colour, hex, mix, parseHex } from '../colour.js'
import type { Palette } from '../palette.js'
import { svg } from './stage.js'

const COLOURS = /#[0-9a-f]{6}\b|#[0-9a-f]{3}\b/g
/** Luma factors of red, green and blue (BT.709). */
const LUMA = [0.2126, 0.7152, 0.0722] as const

/**
 * The box of a figure, and the side of the box that the light comes from. A mirrored figure has the light on the
 * opposite side.
 */
interface Lit {
  readonly id: string
  readonly width: number
  readonly height: number
  readonly fromRight: boolean
  /** Amount of haze in front of the figure, 0 to 1. */
  readonly air: number
}

/**
 * Replaces each colour by a gradient from lit to shaded across the whole figure, so that all parts are lit from the
 * same side.
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
        // Less shade on white, which would look grey.
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

/** Multiplies a colour with the scene's light, and adds haze. */
function tinted(text: string, palette: Palette, air: number): string {
  const ambient = channels(hex(palette.ambient))
  const haze = channels(hex(palette.far))
  const original = channels(hex(parseHex(text)))
  const grey = original.reduce((sum, value, index) => sum + value * (LUMA[index] ?? 0), 0)
  const keptBrightness = 0.5 * whiteness(parseHex(text))
  const shaded = original.map((value, index) => {
    const share = ambient[index] ?? 1
    const lit = (palette.isMonochrome ? grey : value) * (share + (1 - share) * keptBrightness)
    return lit + ((haze[index] ?? 0) - lit) * air
  })
  return `#${shaded
    .map((value) =>
      Math.round(value * 255)
        .toString(16)
        .padStart(2, '0'),
    )
    .join('')}`
}

/** Returns 0 to 1 for colours from light grey to white. */
const whiteness = ({ lightness, chroma }: Colour): number =>
  chroma > 0.04 ? 0 : Math.min(1, Math.max(0, (lightness - 0.75) / 0.2))

/** Returns the drawing in a single colour, for shadows, reflections and lit edges. */
export function silhouette(drawing: string, shade: Colour): string {
  return drawing.replace(COLOURS, hex(shade))
}

function channels(text: string): readonly number[] {
  return [1, 3, 5].map((at) => Number.parseInt(text.slice(at, at + 2), 16) / 255)
}
