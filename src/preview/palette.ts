// Chooses the colours of a picture from the prompt. The hour determines the sky and the light, place and season
// determine the land, and colour words shift both. Land further away is mixed more with the colour of the horizon.
import { type Colour, colour, mix, type Tint } from './colour.js'
import { between, pick, type Random } from './random.js'
import type { Reading } from './read-prompt.js'
import type { Hour, Place } from './vocabulary.js'

export interface Palette {
  readonly hour: Hour
  /** Colours of the sky, from the zenith down to the horizon. */
  readonly sky: readonly [Colour, Colour, Colour, Colour]
  /** Colour of the sun, the moon, lamps, windows, and edges that face the light. */
  readonly light: Colour
  /** Colours of the land, water or streets, the furthest first. `front` is the darkest; white land has blue shadows. */
  readonly far: Colour
  readonly middle: Colour
  readonly near: Colour
  readonly front: Colour
  /** Colours of objects without a named colour: coats, abstract shapes, the bar beside the caption. */
  readonly accent: Colour
  readonly second: Colour
  /** Darkest and lightest colour: the background of the text, and the text. */
  readonly ink: Colour
  readonly paper: Colour
}

/** Parses a colour such as `.66/.08/275`: lightness, chroma and hue. */
const parse = (text: string): Colour => colour(...(text.split('/').map(Number) as [number, number, number]))

/** For each hour: the brightness of the land (1 at noon), the light, and the sky from the zenith to the horizon. */
const HOURS: Readonly<Record<Hour, readonly [number, string, string]>> = {
  dawn: [0.92, '.97/.07/80', '.66/.08/275 .78/.08/325 .88/.08/35 .95/.07/80'],
  day: [1, '.985/.04/95', '.65/.12/245 .77/.095/235 .88/.055/225 .96/.03/200'],
  dusk: [0.72, '.93/.12/75', '.36/.1/285 .52/.14/340 .7/.16/38 .87/.13/72'],
  night: [0.52, '.95/.035/230', '.16/.055/270 .24/.075/265 .34/.085/258 .48/.085/240'],
  grey: [0.76, '.96/.015/100', '.55/.022/245 .66/.02/235 .78/.015/225 .88/.012/210'],
}
/** Colours of the land at noon. */
const LANDS: Readonly<Record<Place, string>> = {
  mountains: '.45/.05/230',
  hills: '.64/.13/130',
  forest: '.44/.09/145',
  desert: '.72/.11/64',
  space: '.5/.07/290',
  sky: '.93/.025/240',
  sea: '.52/.095/225',
  beach: '.56/.09/215',
  underwater: '.4/.09/225',
  city: '.45/.045/270',
  table: '.55/.075/60',
  studio: '.6/.09/60',
  abstract: '.55/.12/280',
}
const SEASONS = { spring: '.7/.13/130', summer: '.64/.14/138', autumn: '.6/.13/58', winter: '.985/.008/240' }

export function paletteFor(reading: Reading, place: Place, random: Random): Palette {
  const { season, tints } = reading
  const hour = hourFor(reading, place, random)
  const [gain, light, skies] = HOURS[hour]
  const isPlain = place === 'abstract' || place === 'studio'
  const theme = { hue: random() * 360, strength: 1 }
  const tint = tints[0] ?? (isPlain || place === 'space' ? theme : undefined)
  // In "a turquoise sea at sunset", the hour determines the sky, and the colour changes the land.
  const keepsHour = reading.hour !== undefined && !isPlain && place !== 'space'
  const [skyPull, landPull] = tints.length === 0 ? [0.5, 0.3] : keepsHour ? [0.12, 0.65] : [0.6, 0.4]
  const sky = skies
    .split(' ')
    .map((shade) => pulled(parse(shade), tint, skyPull)) as unknown as Palette['sky']
  const isSnowy = season === 'winter' && /hills|forest|mountains|beach/.test(place)
  const hasSeason = season !== undefined && (isSnowy || (season !== 'winter' && /hills|forest/.test(place)))
  const noon = pulled(parse(hasSeason ? SEASONS[season] : LANDS[place]), tint, landPull)
  const leaned = mix(noon, { ...noon, hue: sky[1].hue }, (1 - gain) * 0.5)
  // Snow loses less of its light: it stays the lightest thing of a picture at every hour.
  const lightness = noon.lightness * (isSnowy ? 1 - (1 - gain) * 0.55 : gain)
  const land = colour(lightness, leaned.chroma * (0.45 + 0.55 * gain), leaned.hue)
  const haze = mix(sky[3], sky[2], 0.35)
  const clear = reading.actors[0]?.tint ?? tints[1] ?? tints[0]
  // Red to orange, which differ from the yellow of faces.
  const hue = clear?.hue ?? sky[0].hue + between(random, 85, 140)
  // Yellows (around 100 degrees) look muddy when they are as dark as a strong red.
  const brightness = 0.62 + 0.22 * Math.max(0, Math.cos(((hue - 100) * Math.PI) / 180)) ** 2
  return {
    hour,
    sky,
    light: parse(light),
    far: mix(haze, land, isSnowy ? 0.6 : 0.34),
    middle: mix(haze, land, isSnowy ? 0.85 : 0.68),
    near: isSnowy ? land : colour(land.lightness * 0.86, land.chroma, land.hue),
    front: isSnowy
      ? colour(lightness * 0.74, 0.05, 255)
      : colour(Math.max(0.14, lightness * 0.46), land.chroma * 0.8, land.hue),
    accent: colour(clear?.lightness ?? brightness, 0.17 * (clear?.strength ?? 1), hue),
    second: colour(0.7, 0.13, tints.length > 1 ? (tints[0]?.hue ?? hue) : hue + 150),
    ink: colour(0.17, 0.025, sky[0].hue),
    paper: colour(0.97, 0.012, sky[3].hue),
  }
}

function hourFor(reading: Reading, place: Place, random: Random): Hour {
  const rolled = pick(random, ['dawn', 'day', 'day', 'dusk', 'dusk', 'night'] as const)
  if (reading.hour !== undefined) return reading.hour
  // Choose night only for a city, or if the prompt says nothing.
  const isFree = place === 'city' || (reading.place === undefined && reading.actors.length === 0)
  return /underwater|table|studio/.test(place) || (rolled === 'night' && !isFree) ? 'day' : rolled
}

function pulled(shade: Colour, tint: Tint | undefined, amount: number): Colour {
  if (tint === undefined) return shade
  const { hue, strength, lightness: wanted = shade.lightness } = tint
  const chroma =
    strength < 0.2 ? shade.chroma * 0.25 : Math.max(shade.chroma, 0.075) * Math.min(1.15, strength)
  return mix(shade, colour(shade.lightness + (wanted - shade.lightness) * amount * 0.6, chroma, hue), amount)
}
