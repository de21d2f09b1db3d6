// Chooses place, colours and light of a run, and composes one flat stage: the sky, the land with the figures on it, and the
// weather in front. The same arguments give the same drawing.
import { formatHex, type Oklch } from 'culori'
import { EMOJI } from './emoji.mjs'
import { drawActors } from './figure.js'
import { drawLand, drawRoom, drawSea } from './grounds.js'
import { type Reading, readPrompt } from './read-prompt.js'
import type { Size } from './size.js'
import { drawSky, drawWeather } from './sky.js'
import {
  between,
  mix,
  type Palette,
  type Random,
  randomFrom,
  type Setting,
  type Stage,
  type View,
} from './stage.js'
import type { Hour, Place } from './words.js'

export function settingFor(prompt: string, input: unknown, hasReferences = false): Setting {
  const seed = `${prompt}\n${input}`
  const reading = readPrompt(prompt, hasReferences)
  const place = placeFor(reading)
  return { seed, hasReferences, reading, place, palette: paletteFor(reading, place, randomFrom(seed)) }
}

function placeFor(reading: Reading): Place {
  const { place, hour, season, weather, sky, view, actors, isElsewhere } = reading
  const { stance = '', home } = EMOJI.figures[actors[0]?.name ?? ''] ?? {}
  if (place === 'sea') return /float|fly|landmark|^$/.test(stance) ? place : 'beach'
  if (place !== undefined) return place
  const isFace = /face|head|bust/.test(stance) && view === 'close'
  const isNowhere = stance === '' && (hour ?? season ?? weather ?? sky) === undefined
  if (isElsewhere || isFace || isNowhere || (stance === 'thing' && !weather)) return 'studio'
  return home ?? (stance === 'float' ? 'sea' : 'hills')
}

/** For each hour: how much darker than noon the land is, the light, and the sky from the zenith to the horizon. */
const HOURS: Readonly<Record<Hour, string>> = {
  dawn: '.08 #fff1c0 #848fc4 #d2a6d4 #ffc5b4 #ffeaba',
  day: '0 #fffbdc #4896d3 #75bee8 #b1e0f3 #dcf8fa',
  dusk: '.28 #ffdc8a #39336f #9b4382 #f0764f #ffc66e',
  night: '.48 #d8f4ff #050a24 #0d1c42 #193763 #296389',
  grey: '.24 #f4f2e7 #67737e #87949d #aebabf #cfdadc',
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

/**
 * A sky by the hour, and land of the place in the light of that hour. The season and a named colour shift the land. Land
 * further away is mixed more with the colour of the horizon.
 */
function paletteFor({ season, tints, actors, ...reading }: Reading, place: Place, random: Random): Palette {
  const rolled = random() < 0.5 ? 'day' : 'dusk'
  const hour = reading.hour ?? (/underwater|table|studio/.test(place) ? 'day' : rolled)
  const [shade, light = '', zenith = '', high = '', low = '', haze = ''] = HOURS[hour].split(' ')
  const dark = Number(shade)
  const [tint, second = tint] = tints.map(formatHex)
  const isWhite = season === 'winter' && /hills|forest|mountains|beach/.test(place)
  const isGrown = isWhite || /hills|forest/.test(place)
  const noon = isGrown && season ? SEASONS[season] : LANDS[place]
  // Snow stays the lightest thing of a picture at every hour.
  const night = mix(high, '#0a0d20', 0.75)
  const land = mix(mix(noon, tint ?? noon, 0.5), night, dark * (isWhite ? 0.45 : 1))
  const rolledHue: Oklch = { mode: 'oklch', l: 0.68, c: 0.13, h: random() * 360 }
  return {
    hour,
    dark,
    light,
    zenith,
    high,
    low,
    haze,
    far: mix(haze, land, 0.4),
    middle: mix(haze, land, 0.7),
    near: land,
    front: mix(land, isWhite ? '#5b7ba8' : '#02040c', 0.56),
    accent: formatHex(actors[0]?.tint) ?? second ?? formatHex(rolledHue),
    ink: mix('#0b0f19', zenith, 0.06),
    paper: mix('#f7f5f3', haze, 0.2),
  }
}

const GROUNDS: { readonly [Name in Place]?: typeof drawLand } = {
  sea: drawSea,
  beach: drawSea,
  table: drawRoom,
  studio: drawRoom,
}

/** Returns SVG elements in units. */
export function composeScene(setting: Setting, { width, height }: Size, view: View): string {
  const { place, palette, seed, hasReferences } = setting
  const horizon = height * 0.58
  // The light is the same in all shots.
  const lightRandom = randomFrom(seed)
  // References are at the right, and the subject is on the side away from the light.
  const side = hasReferences || lightRandom() < 0.5 ? 1 : -1
  const y = between(lightRandom, 0.18, 0.36) + (/dusk|dawn/.test(palette.hour) ? 0.5 : 0)
  const stage: Stage = {
    ...setting,
    ...view,
    width,
    height,
    horizon,
    light: { x: width * (0.5 + side * between(lightRandom, 0.14, 0.34)), y: y * horizon, side },
    random: randomFrom(`${seed}\n${view.number}`),
    scale: { wide: 1, middle: 1.25, close: 1.7 }[view.framing],
  }
  const hasSky = !/underwater|table|studio/.test(place)
  const [back, ground] = (GROUNDS[place] ?? drawLand)(stage)
  const sky = hasSky ? drawSky(stage) : ''
  const weather = hasSky && place !== 'space' ? drawWeather(stage) : ''
  return sky + back + ground + drawActors(stage) + weather
}
