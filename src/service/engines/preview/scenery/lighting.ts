// One light for everyone. A picture of the set is drawn for a white page: its colours are multiplied with the scene's
// light, air is mixed in when it is far away, its side away from the light lies in shade, and an edge shines on the other.
//
// All of it is done in the text of the drawing. SVG filters look the same and cost 100 to 300 ms a figure at 1080p, since
// each of their steps is a bitmap of the whole canvas; all else of a shot costs less.
import { type Colour, hex, parseHex } from '../colour.js'
import type { Palette } from '../palette.js'
import { short } from './drawing.js'
import type { Light } from './stage.js'

const COLOURS = /#[0-9a-f]{6}\b|#[0-9a-f]{3}\b/g
/** How bright red, green and blue are to the eye (BT.709). */
const LUMA = [0.2126, 0.7152, 0.0722] as const

/** The drawing in the scene's light; `air` 0 to 1 is how much of the haze lies before it. */
export function inLight(drawing: string, palette: Palette, air: number): string {
  const ambient = channels(hex(palette.ambient))
  const haze = channels(hex(palette.far))
  return drawing.replace(COLOURS, (text) => {
    const own = channels(text.length === 4 ? hex(parseHex(text)) : text)
    const grey = own.reduce((sum, value, index) => sum + value * (LUMA[index] ?? 0), 0)
    const lit = own.map((value, index) => {
      const seen = (palette.isMonochrome ? grey : value) * (ambient[index] ?? 1)
      return seen + ((haze[index] ?? 0) - seen) * air
    })
    return `#${lit
      .map((value) =>
        Math.round(value * 255)
          .toString(16)
          .padStart(2, '0'),
      )
      .join('')}`
  })
}

/** A drawing in one colour: shadows, reflections, and edges in the light. */
export function silhouette(drawing: string, shade: Colour): string {
  return drawing.replace(COLOURS, hex(shade))
}

/** Light on one side of a drawing of `width` x `height` and shade on the other; `flip` when it is drawn mirrored. */
export function shading(
  id: string,
  drawing: string,
  size: { readonly width: number; readonly height: number },
  palette: Palette,
  light: Light,
  flip: boolean,
): string {
  const low = palette.hour !== 'day' && palette.hour !== 'grey'
  const fromRight = light.side > 0 !== flip
  const [from, to] = fromRight ? [size.width, 0] : [0, size.width]
  const stops =
    `<stop offset="0" stop-color="${hex(palette.light)}" stop-opacity="${low ? 0.34 : 0.2}"/>` +
    `<stop offset=".42" stop-color="${hex(palette.light)}" stop-opacity="0"/>` +
    `<stop offset=".5" stop-color="${hex(palette.front)}" stop-opacity="0"/>` +
    `<stop offset="1" stop-color="${hex(palette.front)}" stop-opacity="${low ? 0.5 : 0.3}"/>`
  return (
    `<linearGradient id="shade-${id}" gradientUnits="userSpaceOnUse" x1="${from}" y1="${short(size.height * 0.2)}" x2="${to}" y2="${short(size.height * 0.62)}">${stops}</linearGradient>` +
    `<clipPath id="shape-${id}">${shapesOf(drawing)}</clipPath>` +
    `<rect x="-6" y="-6" width="${size.width + 12}" height="${size.height + 12}" fill="url(#shade-${id})" clip-path="url(#shape-${id})"/>`
  )
}

/** A clip knows no groups: the filled shapes alone, each with the transform of the group it stands in. */
function shapesOf(drawing: string): string {
  const transforms: string[] = []
  let shapes = ''
  for (const [tag] of drawing.matchAll(/<\/g>|<g\b[^>]*>|<(?:path|circle|ellipse|rect)\b[^>]*>/g)) {
    if (tag === '</g>') transforms.pop()
    else if (tag.startsWith('<g')) transforms.push(/transform="([^"]*)"/.exec(tag)?.[1] ?? '')
    else if (!tag.includes('fill="none"')) {
      const around = transforms.filter((each) => each !== '').join(' ')
      shapes +=
        around === '' || tag.includes(' transform=') ? tag : tag.replace(/^<\w+/, `$& transform="${around}"`)
    }
  }
  return shapes
}

function channels(text: string): readonly number[] {
  return [1, 3, 5].map((at) => Number.parseInt(text.slice(at, at + 2), 16) / 255)
}
