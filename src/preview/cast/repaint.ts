// Recolours a figure ("a blue fox"): its main hue, and those near it, change to the named colour; eyes, leaves and wheels
// keep theirs.
import { type Colour, colour, hex, parseHex } from '../colour.js'
import type { Tint } from '../colour-words.js'

const FILL = /#[0-9a-f]{6}\b|#[0-9a-f]{3}\b/g
const NEAR = 55
const ALIKE = 32
const GREY = 0.035

export function repaint(body: string, tint: Tint | undefined): string {
  if (tint === undefined) return body
  const main = mainHue(body)
  // "A red fox" is orange: a figure that is close to the named colour is left as it is.
  if (main !== undefined && tint.lightness === undefined && Math.abs(turn(tint.hue - main)) < ALIKE)
    return body
  const isMain = ({ lightness, chroma, hue }: Colour) => {
    if (main === undefined) return lightness > 0.35
    // White and black change the greys too, so that a white shoe has no grey sole; not eyes, tyres and teeth.
    if (chroma <= GREY) return tint.strength < 0.2 && lightness > 0.4 && lightness < 0.93
    return Math.abs(turn(hue - main)) < NEAR
  }
  const mains = (body.match(FILL) ?? []).map(parseHex).filter(isMain)
  const lightest = Math.max(...mains.map(({ lightness }) => lightness))
  return body.replace(FILL, (text) => {
    const shade = parseHex(text)
    if (!isMain(shade)) return text
    const chroma =
      tint.strength < 0.2 ? 0.012 : Math.max(shade.chroma * 0.9, 0.06) * Math.min(1.2, tint.strength)
    // The lightest part gets the named lightness, so that white is white; the others are a little darker.
    const lightness =
      tint.lightness === undefined ? shade.lightness : tint.lightness - (lightest - shade.lightness) * 0.3
    return hex(colour(lightness, chroma, tint.hue + (main === undefined ? 0 : turn(shade.hue - main) * 0.4)))
  })
}

/** The hue of the largest part; undefined for a grey figure. */
function mainHue(body: string): number | undefined {
  const weights = new Map<number, number>()
  for (const part of body.split('<')) {
    const [fill] = part.match(FILL) ?? []
    if (fill === undefined) continue
    const shade = parseHex(fill)
    // Earlier fills weigh more: they are at the bottom, and so the body.
    const weight = shade.chroma > GREY ? shade.chroma / (1 + weights.size * 0.5) : 0
    if (weight > 0) weights.set(shade.hue, (weights.get(shade.hue) ?? 0) + weight)
  }
  const [first] = [...weights].sort(([, one], [, other]) => other - one)
  return first?.[0]
}

const turn = (degrees: number): number => ((degrees + 540) % 360) - 180
