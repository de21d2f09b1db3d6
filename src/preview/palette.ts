// From what the prompt says to the colours of the picture. The hour gives the sky and the light, the place and the
// season give the land, and colour words pull both towards themselves. Planes further away are mixed with the air at
// the horizon: that one rule is the depth of every picture.
import { type Colour, colour, mix } from './colour.js'
import type { Tint } from './colour-words.js'
import { type HourLight, LIGHTS, landOf } from './hours-and-lands.js'
import { between, pick, type Random } from './random.js'
import type { Reading } from './read-prompt.js'
import type { Hour, Location } from './vocabulary.js'

export interface Palette {
  readonly hour: Hour
  /** "Black and white": everything, pictures of the set too. */
  readonly isMonochrome: boolean
  /** From the zenith down to the horizon. */
  readonly sky: readonly [Colour, Colour, Colour, Colour]
  /** The sun, the moon, lamps and windows, edges that face the light. */
  readonly light: Colour
  /** What the light is multiplied with on its way to things: white by day, blue by night. */
  readonly ambient: Colour
  /** Three planes of land, water or streets, the furthest first. */
  readonly far: Colour
  readonly middle: Colour
  readonly near: Colour
  /** What stands between the camera and the scene: nearly black by night. */
  readonly front: Colour
  /** For things without a colour of their own: coats, abstract shapes, the bar beside the caption. */
  readonly accent: Colour
  readonly second: Colour
  /** Darkest and lightest: the ground of the lettering, and the lettering. */
  readonly ink: Colour
  readonly paper: Colour
}

export function hourFor(reading: Reading, place: Location, random: Random): Hour {
  const rolled = pick(random, ['dawn', 'day', 'day', 'dusk', 'dusk', 'night'] as const)
  const isFree = place === 'city' || (reading.place === undefined && reading.actors.length === 0)
  if (reading.hour !== undefined) return reading.hour
  if (place === 'space') return 'night'
  if (place === 'underwater' || place === 'table' || place === 'studio')
    return rolled === 'night' ? 'dusk' : 'day'
  // Night only where it is asked for, or where it suits.
  return rolled === 'night' && !isFree ? 'day' : rolled
}

export function paletteFor(reading: Reading, place: Location, random: Random): Palette {
  const hour = hourFor(reading, place, random)
  const light = LIGHTS[hour]
  const tint = reading.tints[0] ?? themeOf(place, random)
  // "a turquoise sea at sunset": with an hour in the prompt the sky is the hour's, and the colour the land's.
  const isNature = place !== 'abstract' && place !== 'studio'
  const pull = reading.tints.length === 0 ? 0.5 : reading.hour !== undefined && isNature ? 0.16 : 0.6
  const sky = pick(random, light.skies).map((shade) => pulled(shade, tint, pull)) as [
    Colour,
    Colour,
    Colour,
    Colour,
  ]
  const land = lit(
    pulled(
      landOf(place, reading.season, random),
      tint,
      reading.tints.length === 0 ? 0.3 : reading.hour === undefined ? 0.4 : 0.65,
    ),
    light,
  )
  const haze = mix(sky[3], sky[2], 0.35)
  const clear = reading.actors[0]?.tint ?? reading.tints[1] ?? reading.tints[0]
  const hue = clear?.hue ?? sky[0].hue + between(random, 120, 220)

  const palette: Palette = {
    hour,
    isMonochrome: reading.isMonochrome,
    sky,
    light: light.sun,
    ambient: light.ambient,
    far: mix(haze, land, 0.34),
    middle: mix(haze, land, 0.68),
    near: colour(land.lightness * 0.86, land.chroma, land.hue),
    front: colour(Math.max(0.14, land.lightness * 0.46), land.chroma * 0.8, land.hue),
    accent: colour(clear?.lightness ?? brightness(hue), 0.17 * (clear?.strength ?? 1), hue),
    second: colour(0.72, 0.12, hue + 150),
    ink: colour(0.17, 0.025, sky[0].hue),
    paper: colour(0.97, 0.012, sky[3].hue),
  }
  return reading.isMonochrome ? withoutColour(palette) : palette
}

function withoutColour(palette: Palette): Palette {
  const grey = (shade: Colour) => colour(shade.lightness, 0, 0)
  const { hour: _, isMonochrome: __, sky, ...shades } = palette
  const greys = Object.fromEntries(Object.entries(shades).map(([name, shade]) => [name, grey(shade)]))
  return { ...palette, ...greys, sky: sky.map(grey) as unknown as Palette['sky'] }
}

/** A random colour, for places that are not nature, when the prompt names none. */
function themeOf(place: Location, random: Random): Tint | undefined {
  const hue = random() * 360
  return place === 'abstract' || place === 'studio' || place === 'space' ? { hue, strength: 1 } : undefined
}

function pulled(shade: Colour, tint: Tint | undefined, amount: number): Colour {
  if (tint === undefined) return shade
  const chroma =
    tint.strength < 0.2 ? shade.chroma * 0.25 : Math.max(shade.chroma, 0.075) * Math.min(1.15, tint.strength)
  const lightness =
    tint.lightness === undefined ? shade.lightness : mixed(shade.lightness, tint.lightness, amount * 0.6)
  return mix(shade, colour(lightness, chroma, tint.hue), amount)
}

function lit(land: Colour, { ambient, gain }: HourLight): Colour {
  const leaned = mix(land, colour(land.lightness, land.chroma, ambient.hue), (1 - gain) * 0.5)
  return colour(land.lightness * gain, leaned.chroma * (0.45 + 0.55 * gain), leaned.hue)
}

const mixed = (one: number, other: number, amount: number): number => one + (other - one) * amount

/** Yellows (around 100 degrees) look muddy when as dark as a strong red. */
function brightness(hue: number): number {
  return 0.62 + 0.22 * Math.max(0, Math.cos(((hue - 100) * Math.PI) / 180)) ** 2
}
