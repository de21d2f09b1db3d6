// Chooses the colours of a run: a sky by the hour, and land of the place in the light of that hour. The season and named
// colours shift both. Land further away is mixed more with the colour of the horizon. Colours are mixed in OKLab, where
// equal steps look equally large.
import { formatHex, interpolate, type Oklch, oklch } from 'culori'
import { pick, type Random } from './random.js'
import type { Reading } from './read-prompt.js'
import type { Hour, Place } from './words.js'

/** Colours as `#rrggbb`. */
export interface Palette {
  readonly hour: Hour
  /** From the zenith down to the horizon. */
  readonly sky: readonly [string, string, string, string]
  /** The sun, the moon, lamps, and edges that face the light. */
  readonly light: string
  /** The land, water or streets, the furthest first. `front` is the darkest; white land has blue shadows. */
  readonly far: string
  readonly middle: string
  readonly near: string
  readonly front: string
  /** Objects without a named colour, and the bar beside the caption. */
  readonly accent: string
  readonly second: string
  /** The background of text, and the text. */
  readonly ink: string
  readonly paper: string
}

/** `amount` 0 returns the first colour, 1 the second. */
export const mix = (one: string, other: string, amount: number): string =>
  formatHex(interpolate([one, other], 'oklab')(Math.min(1, Math.max(0, amount))))

/** For each hour: the brightness of the land, the light, and the sky from the zenith to the horizon. */
const HOURS: Readonly<Record<Hour, string>> = {
  dawn: '.92 #fff1c0 #848fc4 #d2a6d4 #ffc5b4 #ffeaba',
  day: '1 #fffbdc #4896d3 #75bee8 #b1e0f3 #dcf8fa',
  dusk: '.72 #ffdc8a #39336f #9b4382 #f0764f #ffc66e',
  night: '.52 #d8f4ff #050a24 #0d1c42 #193763 #296389',
  grey: '.76 #f4f2e7 #67737e #87949d #aebabf #cfdadc',
}
/** Colours of the land at noon. */
const LANDS: Readonly<Record<Place, string>> = {
  mountains: '#375b6c',
  hills: '#719b40',
  forest: '#2f5f32',
  desert: '#d59557',
  space: '#625c89',
  sea: '#0e7492',
  beach: '#208295',
  underwater: '#00516c',
  city: '#4b546f',
  table: '#926743',
  studio: '#a87346',
}
const SEASONS = { spring: '#83ae53', summer: '#5fa046', autumn: '#b86a20', winter: '#f5fbff' }

export function paletteFor(reading: Reading, place: Place, random: Random): Palette {
  const { season, tints, actors } = reading
  const hour = hourFor(reading, place, random)
  const [gain = '', light = '', ...skies] = HOURS[hour].split(' ')
  const isPlain = /studio|space/.test(place)
  const shadeOf = (l: number, c: number, h: number): Oklch => ({ mode: 'oklch', l, c, h })
  const tint = tints[0] ?? (isPlain ? shadeOf(0.7, 0.07, random() * 360) : undefined)
  // In "a turquoise sea at sunset", the hour determines the sky, and the colour changes the land.
  const [above, under] = reading.hour !== undefined && !isPlain ? [0.12, 0.65] : [0.55, 0.35]
  const sky = skies.map((shade) => tinted(shade, tint, above)) as unknown as Palette['sky']
  const isSnowy = season === 'winter' && /hills|forest|mountains|beach/.test(place)
  const isGreen = isSnowy || /hills|forest/.test(place)
  const noon = tinted(isGreen && season ? SEASONS[season] : LANDS[place], tint, under)
  // Snow stays the lightest thing of a picture at every hour.
  const dim = (1 - Number(gain)) * (isSnowy ? 0.5 : 1)
  const land = mix(mix(noon, sky[1], dim * 0.3), '#0a0d20', dim * 0.85)
  const hue = random() * 360
  const accent = actors[0]?.tint ?? tints[1] ?? tints[0] ?? shadeOf(0.66, 0.15, hue)
  return {
    hour,
    sky,
    light,
    far: mix(sky[3], land, isSnowy ? 0.6 : 0.34),
    middle: mix(sky[3], land, isSnowy ? 0.85 : 0.68),
    near: mix(land, '#000', isSnowy ? 0 : 0.14),
    front: isSnowy ? mix(land, '#5b7ba8', 0.55) : mix(land, '#02040c', 0.58),
    accent: formatHex(accent),
    second: formatHex(shadeOf(0.7, 0.13, (accent.h ?? hue) + 150)),
    ink: mix('#0b0f19', sky[0], 0.06),
    paper: mix('#f7f5f3', sky[3], 0.2),
  }
}

function hourFor({ hour, place, actors }: Reading, where: Place, random: Random): Hour {
  // Choose night only for a city, or if the prompt says nothing.
  const isFree = where === 'city' || (place === undefined && actors.length === 0)
  const rolled = pick(random, ['dawn', 'day', 'day', 'dusk', 'dusk', isFree ? 'night' : 'day'] as const)
  return hour ?? (/underwater|table|studio/.test(where) ? 'day' : rolled)
}

/** Pulls a colour towards the hue of another one, with most of its own lightness. */
function tinted(shade: string, tint: Oklch | undefined, amount: number): string {
  const { l, c } = oklch(shade) as Oklch
  if (tint === undefined) return shade
  const chroma = tint.c < 0.03 ? c * 0.25 : Math.max(c, 0.075) * Math.min(1.15, tint.c / 0.15)
  return mix(shade, formatHex({ ...tint, l: l + (tint.l - l) * amount * 0.25, c: chroma }), amount)
}
