// Chooses place, colours and light of a run, and composes one flat stage: the sky, the land with the figures on it, and the
// weather in front. The same arguments give the same drawing.

import { drawCity, drawStudio, drawTable } from './built.js'
import { EMOJI } from './emoji.mjs'
import { drawActors } from './figure.js'
import { drawLand } from './land.js'
import { paletteFor } from './palette.js'
import { between, pick, type Random, randomFrom } from './random.js'
import { type Reading, readPrompt } from './read-prompt.js'
import type { Size } from './size.js'
import { drawSky, drawWeather } from './sky.js'
import type { Setting, Stage } from './stage.js'
import { drawSea, drawUnderwater } from './water.js'
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

const stanceOf = ({ actors }: Reading): string => EMOJI.figures[actors[0]?.name ?? '']?.stance ?? ''

function placeFor(reading: Reading, random: Random): Place {
  const { place, actors, hour, season, weather, sky, view, isElsewhere } = reading
  const rolled = pick(random, ['mountains', 'hills', 'sea', 'forest', 'desert', 'city'])
  const [stance, home] = [stanceOf(reading), EMOJI.figures[actors[0]?.name ?? '']?.home]
  if (place === 'sea')
    return home === 'underwater' ? home : /float|fly|landmark|^$/.test(stance) ? place : 'beach'
  const isPortrait = view === 'close' && /face|bust/.test(stance)
  const isPlain =
    isElsewhere ||
    (isPortrait && (weather ?? season) === undefined) ||
    (stance === 'thing' && weather === undefined)
  if (place !== undefined || isPlain) return place ?? 'studio'
  if (stance === '') return (hour ?? season ?? weather ?? sky) === undefined ? 'studio' : rolled
  return home ?? (stance === 'float' ? 'sea' : pick(random, ['hills', 'forest']))
}

/** Returns SVG elements in units. `number` is that of the shot, which seeds the shapes of hills and clouds. */
export function composeScene(
  setting: Setting,
  { width, height }: Size,
  view: Pick<Stage, 'framing' | 'hasReferences' | 'margin'> & { readonly number: number },
): string {
  const { light, place, seed, reading } = setting
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
  const grounds = {
    sea: drawSea,
    beach: drawSea,
    underwater: drawUnderwater,
    city: drawCity,
    table: drawTable,
    space: drawLand,
  }
  const hasStand = stanceOf(reading) === 'thing' && !view.hasReferences
  const draw = place === 'studio' ? drawStudio : (grounds[place as 'sea'] ?? drawLand)
  const isOutdoors = !/underwater|table|studio/.test(place)
  const sky = isOutdoors ? drawSky(stage) : ''
  const [back, ground, front = ''] = draw(stage, hasStand)
  const [behind, onGround] = drawActors(stage)
  return (
    sky +
    back +
    behind +
    ground +
    onGround +
    front +
    (isOutdoors && place !== 'space' ? drawWeather(stage) : '')
  )
}
