// A picture of the set in another colour: "a blue fox". The hue that most of it has, and those near it, turn to the
// colour that was named; eyes, leaves and wheels stay what they are.
import { colour, hex, parseHex } from '../colour.js'
import type { Tint } from '../tints.js'

const FILL = /#[0-9a-f]{6}\b|#[0-9a-f]{3}\b/g
const NEAR = 55
const ALIKE = 32
const GREY = 0.035

export function repaint(body: string, tint: Tint | undefined): string {
  if (tint === undefined) return body
  const main = mainHue(body)
  // "A red fox" is orange: what is about the colour already stays as it was drawn.
  if (main !== undefined && tint.lightness === undefined && Math.abs(turn(tint.hue - main)) < ALIKE)
    return body
  return body.replace(FILL, (text) => {
    const shade = parseHex(text)
    const isMain =
      main === undefined
        ? shade.lightness > 0.35
        : shade.chroma > GREY && Math.abs(turn(shade.hue - main)) < NEAR
    if (!isMain) return text
    const chroma =
      tint.strength < 0.2 ? 0.012 : Math.max(shade.chroma * 0.9, 0.06) * Math.min(1.2, tint.strength)
    const lightness =
      tint.lightness === undefined ? shade.lightness : shade.lightness * 0.35 + tint.lightness * 0.65
    return hex(colour(lightness, chroma, tint.hue + (main === undefined ? 0 : turn(shade.hue - main) * 0.4)))
  })
}

/** The hue with the most drawing in it, by the length of its paths; undefined for what is grey all over. */
function mainHue(body: string): number | undefined {
  const weights = new Map<number, number>()
  for (const part of body.split('<')) {
    const [fill] = part.match(FILL) ?? []
    if (fill === undefined) continue
    const shade = parseHex(fill)
    // The first fills lie at the bottom, and are the body.
    const weight = shade.chroma > GREY ? shade.chroma / (1 + weights.size * 0.5) : 0
    if (weight > 0) weights.set(shade.hue, (weights.get(shade.hue) ?? 0) + weight)
  }
  const [first] = [...weights].sort(([, one], [, other]) => other - one)
  return first?.[0]
}

const turn = (degrees: number): number => ((degrees + 540) % 360) - 180
