// Chooses the colours of a picture from the prompt. The hour determines the sky and the light, place and season
// determine the land, and colour words shift both. Land further away is mixed more with the colour of the horizon.
import { type Colour, colour, mix, type Tint } from './colour.js'
import { between, pick, type Random } from './random.js'
import type { Reading } from './read-prompt.js'
import type { Hour, Place } from './vocabulary.js'

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

/** Parses colours such as `.66/.08/275 .78/.08/325`: lightness, chroma and hue. */
const parse = (text: string) =>
  text.split(' ').map((shade) => colour(...(shade.split('/').map(Number) as [number, number, number])))

/** For each hour: brightness of the land (1 at noon), colours of sun and of objects, and skies to choose from. */
const LIGHTS: Readonly<Record<Hour, readonly [number, string, string, ...string[]]>> = {
  dawn: [
    0.92,
    '.97/.07/80',
    '.95/.035/45',
    '.66/.08/275 .78/.08/325 .88/.08/35 .95/.07/80',
    '.7/.07/235 .83/.05/220 .92/.05/60 .96/.06/70',
  ],
  day: [
    1,
    '.985/.04/95',
    '1/0/90',
    '.65/.12/245 .77/.095/235 .88/.055/225 .96/.03/200',
    '.68/.11/225 .8/.08/215 .91/.04/200 .97/.03/100',
  ],
  dusk: [
    0.72,
    '.93/.12/75',
    '.86/.06/35',
    '.36/.1/285 .52/.14/340 .7/.16/38 .87/.13/72',
    '.4/.11/300 .58/.15/5 .75/.14/45 .9/.1/85',
  ],
  night: [
    0.52,
    '.95/.035/230',
    '.8/.04/265',
    '.16/.055/270 .24/.075/265 .34/.085/258 .48/.085/240',
    '.17/.06/290 .26/.09/295 .37/.1/305 .5/.1/330',
  ],
  grey: [0.76, '.96/.015/100', '.88/.02/240', '.55/.022/245 .66/.02/235 .78/.015/225 .88/.012/210'],
}
/** Colours of the land at noon. */
const LANDS: Readonly<Record<Place, string>> = {
  ...{
    mountains: '.42/.055/262 .45/.045/215 .44/.05/300',
    hills: '.62/.13/135 .66/.125/120',
    forest: '.42/.085/152 .46/.09/135',
  },
  ...{
    desert: '.72/.11/68 .68/.13/50',
    space: '.5/.07/290 .46/.06/30',
    sky: '.93/.025/240',
    sea: '.5/.095/230 .56/.09/205',
  },
  ...{
    beach: '.56/.09/215',
    underwater: '.4/.09/225',
    city: '.45/.045/265 .5/.05/40 .42/.05/300',
    studio: '.6/.09/60',
  },
  ...{ table: '.52/.075/58 .62/.07/70 .42/.06/45', abstract: '.55/.12/280', card: '.55/.1/260' },
}
const SEASON_LANDS = {
  spring: '.7/.13/130',
  summer: '.64/.14/138',
  autumn: '.6/.13/58',
  winter: '.985/.008/240',
} as const

export function paletteFor(reading: Reading, place: Place, random: Random): Palette {
  const { season, isMonochrome, tints } = reading
  const hour = hourFor(reading, place, random)
  const [gain, sun, ambience, ...skies] = LIGHTS[hour]
  const [light, ambient] = parse(`${sun} ${ambience}`) as [Colour, Colour]
  const isPlain = place === 'abstract' || place === 'studio' || place === 'card'
  const theme = { hue: random() * 360, strength: 1 }
  const tint = tints[0] ?? (isPlain || place === 'space' ? theme : undefined)
  // In "a turquoise sea at sunset", the hour determines the sky, and the colour changes the land.
  const pull = tints.length === 0 ? 0.5 : reading.hour !== undefined && !isPlain ? 0.12 : 0.6
  const sky = parse(pick(random, skies as [string])).map((shade) =>
    pulled(shade, tint, pull),
  ) as unknown as Palette['sky']
  const isSnowy = season === 'winter' && /hills|forest|mountains|beach/.test(place)
  const lands =
    isSnowy || (season && season !== 'winter' && /hills|forest/.test(place))
      ? SEASON_LANDS[season]
      : LANDS[place]
  const noon = pulled(
    pick(random, parse(lands) as [Colour]),
    tint,
    tints.length === 0 ? 0.3 : reading.hour === undefined ? 0.4 : 0.65,
  )
  const leaned = mix(noon, colour(noon.lightness, noon.chroma, ambient.hue), (1 - gain) * 0.5)
  // Snow loses less of its light: it stays the lightest thing of a picture at every hour.
  const lightness = noon.lightness * (isSnowy ? 1 - (1 - gain) * 0.55 : gain)
  const land = colour(lightness, leaned.chroma * (0.45 + 0.55 * gain), leaned.hue)
  const haze = mix(sky[3], sky[2], 0.35)
  const clear = reading.actors[0]?.tint ?? tints[1] ?? tints[0]
  const hue = clear?.hue ?? sky[0].hue + between(random, 120, 220)
  // Yellows (around 100 degrees) look muddy when they are as dark as a strong red.
  const brightness = 0.62 + 0.22 * Math.max(0, Math.cos(((hue - 100) * Math.PI) / 180)) ** 2
  const other = tints.length > 1 ? (tints[0]?.hue ?? hue) : hue + 150
  const shades = {
    light,
    ambient,
    far: mix(haze, land, isSnowy ? 0.6 : 0.34),
    middle: mix(haze, land, isSnowy ? 0.85 : 0.68),
    near: isSnowy ? land : colour(land.lightness * 0.86, land.chroma, land.hue),
    front: isSnowy
      ? colour(lightness * 0.74, 0.05, 255)
      : colour(Math.max(0.14, lightness * 0.46), land.chroma * 0.8, land.hue),
    accent: colour(clear?.lightness ?? brightness, 0.17 * (clear?.strength ?? 1), hue),
    second: colour(0.7, 0.13, other),
    ink: colour(0.17, 0.025, sky[0].hue),
    paper: colour(0.97, 0.012, sky[3].hue),
  }
  if (!isMonochrome) return { hour, isMonochrome, sky, ...shades }
  const grey = (shade: Colour): Colour => ({ ...shade, chroma: 0 })
  const greys = Object.fromEntries(Object.entries(shades).map(([name, shade]) => [name, grey(shade)]))
  return { hour, isMonochrome, sky: sky.map(grey) as unknown as Palette['sky'], ...(greys as typeof shades) }
}

function hourFor(reading: Reading, place: Place, random: Random): Hour {
  const rolled = pick(random, ['dawn', 'day', 'day', 'dusk', 'dusk', 'night'] as const)
  if (reading.hour !== undefined) return reading.hour
  if (place === 'space') return 'night'
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
