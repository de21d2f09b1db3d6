// The colours of the hours and of the lands, chosen by eye. Lightness, chroma, hue.
import { type Colour, colour } from './colour.js'
import { pick, type Random } from './random.js'
import type { Hour, Location, Season } from './vocabulary.js'

type Sky = readonly [Colour, Colour, Colour, Colour]

export interface HourLight {
  readonly skies: readonly [Sky, ...Sky[]]
  readonly sun: Colour
  readonly ambient: Colour
  /** How bright land is, 1 at noon. */
  readonly gain: number
}

const sky = (...rows: readonly (readonly [number, number, number])[]): Sky =>
  rows.map(([lightness, chroma, hue]) => colour(lightness, chroma, hue)) as unknown as Sky

export const LIGHTS: Readonly<Record<Hour, HourLight>> = {
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
}

const GREEN: ReadonlySet<Location> = new Set(['hills', 'forest', 'mountains'])
const SEASON_LANDS: Readonly<Record<Season, Colour>> = {
  spring: colour(0.7, 0.13, 130),
  summer: colour(0.64, 0.14, 138),
  autumn: colour(0.6, 0.13, 58),
  winter: colour(0.93, 0.022, 245),
}

/** The land at noon. */
export function landOf(place: Location, season: Season | undefined, random: Random): Colour {
  const land = pick(random, LANDS[place])
  if (season === undefined) return land
  if (season === 'winter' && (GREEN.has(place) || place === 'city')) {
    return place === 'forest' || place === 'city' ? colour(0.86, 0.025, 240) : SEASON_LANDS.winter
  }
  return GREEN.has(place) && place !== 'mountains' ? SEASON_LANDS[season] : land
}
