// From what the prompt says to the colours of the picture: the hour gives light and dark, the colour words give the
// hue, and where the prompt is silent the dice decide. Ten colours, each with one job.
import { type Colour, colour, mix } from './colour.js'
import { between, pick, type Random } from './random.js'
import type { Hour, Tint } from './vocabulary.js'
import type { Reading } from './words.js'

export interface Palette {
  readonly hour: Hour
  readonly skyHigh: Colour
  readonly skyLow: Colour
  /** The sun or the moon, lamps and windows. */
  readonly light: Colour
  /** Three planes of land or water, the furthest first. */
  readonly far: Colour
  readonly middle: Colour
  readonly near: Colour
  /** What the eye should find: the subject. */
  readonly accent: Colour
  /** Darkest and lightest: the ground of the lettering, and the lettering. */
  readonly ink: Colour
  readonly paper: Colour
}

interface Light {
  readonly high: number
  readonly low: number
  readonly nearest: number
  readonly chroma: number
  /** How far round the wheel the low sky leans from the theme's hue, and towards what. */
  readonly lean: { readonly hue: number; readonly amount: number }
}

const LIGHTS: Readonly<Record<Hour, Light>> = {
  dawn: { high: 0.74, low: 0.93, nearest: 0.36, chroma: 0.075, lean: { hue: 50, amount: 0.7 } },
  day: { high: 0.72, low: 0.95, nearest: 0.34, chroma: 0.095, lean: { hue: 200, amount: 0.25 } },
  dusk: { high: 0.4, low: 0.82, nearest: 0.19, chroma: 0.12, lean: { hue: 55, amount: 0.85 } },
  night: { high: 0.17, low: 0.4, nearest: 0.1, chroma: 0.085, lean: { hue: 285, amount: 0.3 } },
  grey: { high: 0.6, low: 0.86, nearest: 0.27, chroma: 0.028, lean: { hue: 240, amount: 0.4 } },
}

export function paletteFor(reading: Reading, random: Random): Palette {
  const hour = reading.hour ?? pick(random, ['dawn', 'day', 'dusk', 'dusk', 'night'] as const)
  const light = LIGHTS[hour]
  const rolled = { hue: between(random, 0, 360), strength: between(random, 0.8, 1.15) }
  const theme = reading.tints[0] ?? rolled
  const second: Tint = reading.subjectTint ??
    reading.tints[1] ?? { hue: theme.hue + between(random, 130, 230), strength: 1.1 }
  const chroma = light.chroma * theme.strength

  const skyHigh = colour(light.high, chroma, theme.hue)
  const leaning = mix(
    colour(light.low, chroma, theme.hue),
    colour(light.low, chroma, light.lean.hue),
    light.lean.amount,
  )
  const skyLow = colour(light.low, chroma * (hour === 'day' ? 0.45 : 1), leaning.hue)
  const near = colour(light.nearest, chroma * 0.7, theme.hue + between(random, -18, 18))

  return {
    hour,
    skyHigh,
    skyLow,
    light: colour(0.96, hour === 'grey' ? 0.01 : 0.06, hour === 'night' ? 230 : 85),
    far: mix(skyLow, near, 0.3),
    middle: mix(skyLow, near, 0.62),
    near,
    accent: colour(second.lightness ?? brightness(second.hue), 0.165 * second.strength, second.hue),
    ink: colour(0.16, 0.02, theme.hue),
    paper: colour(0.97, 0.012, theme.hue + 40),
  }
}

/** A yellow as dark as a good red is mud: hues around 100 degrees are at their best when light. */
function brightness(hue: number): number {
  return 0.62 + 0.22 * Math.max(0, Math.cos(((hue - 100) * Math.PI) / 180)) ** 2
}
