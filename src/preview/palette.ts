// Chooses the colours of a picture from the prompt. The hour determines the sky and the light, place and season
// determine the land, and colour words shift both. Planes further away are mixed more with the colour of the air at the
// horizon, which gives every picture its depth.
import { type Colour, colour, mix, type Tint } from './colour.js'
import { between, pick, type Random } from './random.js'
import type { Reading } from './read-prompt.js'
import type { Hour, Location, Season } from './vocabulary.js'

export interface Palette {
  readonly hour: Hour
  /** Whether all colours are grey, including the figures ("black and white"). */
  readonly isMonochrome: boolean
  /** Colours of the sky, from the zenith down to the horizon. */
  readonly sky: readonly [Colour, Colour, Colour, Colour]
  /** Colour of the sun, the moon, lamps, windows, and edges that face the light. */
  readonly light: Colour
  /** Colours of objects are multiplied with this colour: white by day, blue by night. */
  readonly ambient: Colour
  /** Colours of the three planes of land, water or streets, the furthest first. */
  readonly far: Colour
  readonly middle: Colour
  readonly near: Colour
  /** Colour of the nearest plane, between the camera and the scene. Nearly black by night. */
  readonly front: Colour
  /** Colour of objects without a named colour: coats, abstract shapes, the bar beside the caption. */
  readonly accent: Colour
  readonly second: Colour
  /** Darkest and lightest colour: the background of the text, and the text. */
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
  // Choose night only if the prompt or the place requires it.
  return rolled === 'night' && !isFree ? 'day' : rolled
}

export function paletteFor(reading: Reading, place: Location, random: Random): Palette {
  const hour = hourFor(reading, place, random)
  const light = LIGHTS[hour]
  const tint = reading.tints[0] ?? themeOf(place, random)
  // In "a turquoise sea at sunset", the hour determines the sky, and the colour changes the land.
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

/** Returns a random colour for places that are not nature, for prompts without a colour. */
function themeOf(place: Location, random: Random): Tint | undefined {
  const hue = random() * 360
  return place === 'abstract' || place === 'studio' || place === 'space' || place === 'card'
    ? { hue, strength: 1 }
    : undefined
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

/**
 * Returns the lightness of a hue. Yellows (around 100 degrees) are lighter, because they look muddy when they are as
 * dark as a strong red.
 */
function brightness(hue: number): number {
  return 0.62 + 0.22 * Math.max(0, Math.cos(((hue - 100) * Math.PI) / 180)) ** 2
}

type Sky = readonly [Colour, Colour, Colour, Colour]

interface HourLight {
  readonly skies: readonly [Sky, ...Sky[]]
  readonly sun: Colour
  readonly ambient: Colour
  /** Brightness of the land; 1 at noon. */
  readonly gain: number
}

const sky = (...rows: readonly (readonly [number, number, number])[]): Sky =>
  rows.map(([lightness, chroma, hue]) => colour(lightness, chroma, hue)) as unknown as Sky

const LIGHTS: Readonly<Record<Hour, HourLight>> = {
  dawn: {
    skies: [
      sky([0.66, 0.08, 275], [0.78, 0.08, 325], [0.88, 0.08, 35], [0.95, 0.07, 80]),
      sky([0.7, 0.07, 235], [0.83, 0.05, 220], [0.92, 0.05, 60], [0.96, 0.06, 70]),
    ],
    sun: colour(0.97, 0.07, 80),
    ambient: colour(0.95, 0.035, 45),
    gain: 0.92,
  },
  day: {
    skies: [
      sky([0.65, 0.12, 245], [0.77, 0.095, 235], [0.88, 0.055, 225], [0.96, 0.03, 200]),
      sky([0.68, 0.11, 225], [0.8, 0.08, 215], [0.91, 0.04, 200], [0.97, 0.03, 100]),
    ],
    sun: colour(0.985, 0.04, 95),
    ambient: colour(1, 0, 90),
    gain: 1,
  },
  dusk: {
    skies: [
      sky([0.36, 0.1, 285], [0.52, 0.14, 340], [0.7, 0.16, 38], [0.87, 0.13, 72]),
      sky([0.42, 0.07, 230], [0.6, 0.06, 210], [0.8, 0.1, 70], [0.87, 0.13, 65]),
      sky([0.4, 0.11, 300], [0.58, 0.15, 5], [0.75, 0.14, 45], [0.9, 0.1, 85]),
    ],
    sun: colour(0.93, 0.12, 75),
    ambient: colour(0.86, 0.06, 35),
    gain: 0.72,
  },
  night: {
    skies: [
      sky([0.16, 0.055, 270], [0.24, 0.075, 265], [0.34, 0.085, 258], [0.48, 0.085, 240]),
      sky([0.17, 0.06, 290], [0.26, 0.09, 295], [0.37, 0.1, 305], [0.5, 0.1, 330]),
    ],
    sun: colour(0.95, 0.035, 230),
    ambient: colour(0.8, 0.04, 265),
    gain: 0.52,
  },
  grey: {
    skies: [
      sky([0.55, 0.022, 245], [0.66, 0.02, 235], [0.78, 0.015, 225], [0.88, 0.012, 210]),
      sky([0.6, 0.03, 220], [0.7, 0.025, 215], [0.82, 0.018, 200], [0.9, 0.014, 120]),
    ],
    sun: colour(0.96, 0.015, 100),
    ambient: colour(0.88, 0.02, 240),
    gain: 0.76,
  },
}

const LANDS: Readonly<Record<Location, readonly [Colour, ...Colour[]]>> = {
  mountains: [colour(0.42, 0.055, 262), colour(0.45, 0.045, 215), colour(0.44, 0.05, 300)],
  hills: [colour(0.62, 0.13, 135), colour(0.66, 0.125, 120), colour(0.58, 0.11, 150)],
  sea: [colour(0.5, 0.095, 230), colour(0.56, 0.09, 205)],
  underwater: [colour(0.4, 0.09, 225)],
  city: [colour(0.45, 0.045, 265), colour(0.5, 0.05, 40), colour(0.42, 0.05, 300)],
  forest: [colour(0.42, 0.085, 152), colour(0.46, 0.09, 135)],
  desert: [colour(0.72, 0.11, 68), colour(0.68, 0.13, 50)],
  space: [colour(0.5, 0.07, 290), colour(0.46, 0.06, 30)],
  sky: [colour(0.93, 0.025, 240)],
  table: [colour(0.52, 0.075, 58), colour(0.62, 0.07, 70), colour(0.42, 0.06, 45)],
  studio: [colour(0.6, 0.09, 60)],
  abstract: [colour(0.55, 0.12, 280)],
  card: [colour(0.55, 0.1, 260)],
}

const GREEN: ReadonlySet<Location> = new Set(['hills', 'forest', 'mountains'])
const SEASON_LANDS: Readonly<Record<Season, Colour>> = {
  spring: colour(0.7, 0.13, 130),
  summer: colour(0.64, 0.14, 138),
  autumn: colour(0.6, 0.13, 58),
  winter: colour(0.93, 0.022, 245),
}

/** Returns the colour of the land at noon. */
function landOf(place: Location, season: Season | undefined, random: Random): Colour {
  const land = pick(random, LANDS[place])
  if (season === undefined) return land
  if (season === 'winter' && (GREEN.has(place) || place === 'city')) {
    return place === 'forest' || place === 'city' ? colour(0.86, 0.025, 240) : SEASON_LANDS.winter
  }
  return GREEN.has(place) && place !== 'mountains' ? SEASON_LANDS[season] : land
}
