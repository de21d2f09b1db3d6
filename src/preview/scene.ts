// Chooses place, colours and light of a run, and composes one flat stage: the sky, the land with the figures on it, and the
// weather in front. The same arguments give the same drawing.
import { EMOJI } from './emoji.mjs'
import { drawActors } from './figure.js'
import { drawCity, drawLand, drawSea, drawStudio, drawTable } from './grounds.js'
import { paletteFor } from './palette.js'
import { between, pick, type Random, randomFrom } from './random.js'
import { type Reading, readPrompt } from './read-prompt.js'
import type { Size } from './size.js'
import { drawSky, drawWeather } from './sky.js'
import type { Layers, Setting, Stage } from './stage.js'
import type { Place } from './words.js'

export function settingFor(prompt: string, seed: unknown, hasReferences = false): Setting {
  const reading = readPrompt(prompt, hasReferences)
  const random = randomFrom(`${prompt}\n${seed}`)
  const place = placeFor(reading, random)
  const palette = paletteFor(reading, place, random)
  const x = random() < 0.5 ? between(random, 0.16, 0.36) : between(random, 0.64, 0.84)
  const y = between(random, 0.18, 0.36) + (/dusk|dawn/.test(palette.hour) ? 0.5 : 0)
  return { seed: `${prompt}\n${seed}`, reading, place, palette, light: { x, y, side: x < 0.5 ? -1 : 1 } }
}

const figureOf = ({ actors }: Reading) => EMOJI.figures[actors[0]?.name ?? '']

function placeFor(reading: Reading, random: Random): Place {
  const { place, hour, season, weather, sky, view, isElsewhere } = reading
  const rolled = pick(random, ['mountains', 'hills', 'sea', 'forest', 'desert', 'city'])
  const { stance = '', home } = figureOf(reading) ?? {}
  if (place === 'sea')
    return home === 'underwater' ? home : /float|fly|landmark|^$/.test(stance) ? place : 'beach'
  const isPlain =
    isElsewhere || (/face|head|bust/.test(stance) && view === 'close') || (stance === 'thing' && !weather)
  if (place !== undefined || isPlain) return place ?? 'studio'
  if (stance === '') return (hour ?? season ?? weather ?? sky) === undefined ? 'studio' : rolled
  return home ?? (stance === 'float' ? 'sea' : pick(random, ['hills', 'forest']))
}

const GROUNDS: { readonly [Name in Place]?: (stage: Stage) => Layers } = {
  sea: drawSea,
  beach: drawSea,
  city: drawCity,
  table: drawTable,
  studio: drawStudio,
}

/** Returns SVG elements in units. `number` is that of the shot, which seeds the shapes of hills and clouds. */
export function composeScene(
  setting: Setting,
  { width, height }: Size,
  view: Pick<Stage, 'framing' | 'hasReferences' | 'margin'> & { readonly number: number },
): string {
  const { light, place, seed } = setting
  const horizon = height * 0.58
  const stage: Stage = {
    ...setting,
    ...view,
    width,
    height,
    horizon,
    random: randomFrom(`${seed}\n${view.number}`),
    scale: { wide: 1, middle: 1.25, close: 1.7 }[view.framing],
    light: { ...light, x: light.x * width, y: light.y * horizon },
  }
  const hasSky = !/underwater|table|studio/.test(place)
  const sky = hasSky ? drawSky(stage) : ''
  const [back, ground, front = ''] = (GROUNDS[place] ?? drawLand)(stage)
  const [behind, onGround] = drawActors(stage)
  const weather = hasSky && place !== 'space' ? drawWeather(stage) : ''
  return sky + back + behind + ground + onGround + front + weather
}
