// Chooses place, colours, light and figures of a run, and composes one flat stage: the sky, the land with the figures on
// it, and the weather in front. The same arguments give the same drawing.
import { paletteFor } from '../palette.js'
import { between, pick, type Random, randomFrom } from '../random.js'
import { type Actor, type Reading, readPrompt } from '../read-prompt.js'
import type { Size } from '../size.js'
import { keysByWord, type Place } from '../vocabulary.js'
import { drawActors } from './actors.js'
import { drawCity, drawShapes, drawStudio, drawTable } from './built.js'
import { drawLand } from './land.js'
import { drawSky, drawWeather } from './sky.js'
import type { Setting, Stage, View } from './stage.js'
import { drawSea, drawUnderwater } from './water.js'

/** With `runId`, runs with the same prompt get different pictures. */
export function settingFor(prompt: string, runId?: string): Setting {
  const reading = readPrompt(prompt)
  const seed = runId === undefined ? prompt : `${prompt}\n${runId}`
  const random = randomFrom(`${seed}\nsetting`)
  const place = placeFor(reading, random, prompt)
  const palette = paletteFor(reading, place, randomFrom(`${seed}\ncolours`))
  const x = random() < 0.5 ? between(random, 0.16, 0.36) : between(random, 0.64, 0.84)
  const isLow = palette.hour === 'dusk' || palette.hour === 'dawn'
  const y = isLow ? between(random, 0.68, 0.86) : between(random, 0.18, 0.36)
  const light = { x, y, side: x < 0.5 ? -1 : 1 } as const
  return { prompt, seed, reading, place, palette, actors: castFor(reading, place), light }
}

/** The place of a subject if the prompt names none. */
const HOMES: Readonly<Partial<Record<Place, string>>> = {
  mountains: 'penguin polar-bear skier snowboarder goat eagle castle mount-fuji dragon person-climbing',
  hills: 'snowman elephant lion zebra giraffe horse cow ewe locomotive tractor windmill farmer',
  forest: `tiger monkey gorilla orangutan parrot panda fox wolf bear owl deer mushroom fire hedgehog shinto-shrine`,
  desert: 'camel scorpion cactus snake racing-car',
  space: 'astronaut alien rocket satellite flying-saucer ringed-planet globe-showing-europe-africa',
  sky: 'airplane parachute',
  sea: 'person-surfing seal lighthouse palm-tree flamingo heron desert-island crab',
  underwater: 'fish tropical-fish octopus squid jellyfish shark turtle',
  city: `taxi bus tram automobile motor-scooter auto-rickshaw office-building robot detective red-paper-lantern helicopter
    hospital hotel school station factory classical-building department-store convenience-store tokyo-tower
    statue-of-liberty police-officer police-car ambulance fire-engine construction-worker`,
  table: 'cook health-worker scientist technologist teacher student office-worker',
}
const homes = keysByWord(HOMES)
const PRODUCT = new RegExp(
  `shoe|bag|watch|phone|lotion|lipstick|gem|ring|crown|laptop|camera|perfume|sunglasses|pack|boot|trophy|shirt|dress|game|heart
  |umbrella|guitar|violin|coat|jeans|scarf|socks|gloves|kimono|necktie|hat|glasses|sandal|briefcase|skate|skis|sword|dagger
  |shield|skull|gear|battery|bulb`.replace(/\s/g, ''),
)
const SOMEWHERE = ['mountains', 'hills', 'sea', 'forest', 'desert', 'hills', 'sea', 'city'] as const

function placeFor(reading: Reading, random: Random, prompt: string): Place {
  const { place, actors, hour, season, weather, skyEvent, tints, view } = reading
  const rolled = pick(random, SOMEWHERE)
  const [first] = actors
  const home = homes.get(first?.icon ?? '')
  if (place === 'sea' && home === 'underwater') return 'underwater'
  if (place !== undefined) return place
  const isOutdoors = (hour ?? season ?? weather ?? skyEvent) !== undefined
  if (reading.unknownSubject !== undefined) return isOutdoors ? rolled : 'studio'
  if (first === undefined)
    return !/\p{L}/u.test(prompt) || (tints.length > 0 && season === undefined) ? 'abstract' : rolled
  // A portrait shows a face, not a place, unless the prompt has weather.
  const isPerson = first.stance === 'head' || first.stance === 'bust'
  if (view === 'close' && isPerson && weather === undefined && season === undefined) return 'studio'
  if (home !== undefined) return home
  if (first.stance === 'thing' && weather === undefined) return PRODUCT.test(first.icon) ? 'studio' : 'table'
  return first.stance === 'float' ? 'sea' : pick(random, ['hills', 'forest', 'hills'] as const)
}

function castFor({ actors }: Reading, place: Place): readonly Actor[] {
  // A coral of an abstract picture is a colour.
  if (place === 'abstract') return actors.filter(({ icon }) => icon !== 'coral')
  // In "a doctor in a hospital", the building is not visible. "A church on a desk" keeps the church.
  const inside = actors.filter(({ stance }) => stance !== 'landmark')
  return (place === 'table' || place === 'studio') && inside.length > 0 ? inside : actors
}

/** Sizes of objects. */
const SCALES: Readonly<Record<View['framing'], number>> = { wide: 1, middle: 1.25, close: 1.7 }

/** The grounds; all other places are land. */
const GROUNDS: Readonly<Partial<Record<Place, typeof drawLand>>> = {
  sea: drawSea,
  beach: drawSea,
  underwater: drawUnderwater,
  city: drawCity,
  table: drawTable,
  studio: drawStudio,
  abstract: drawShapes,
}

/** Returns SVG elements in units. */
export function composeScene(setting: Setting, { width, height }: Size, view: View): string {
  const { seed, place, actors, light } = setting
  const random = randomFrom(`${seed}\nview ${view.number}`)
  const horizon = height * 0.58
  const stance = actors[0]?.stance
  const stage: Stage = {
    ...setting,
    ...view,
    width,
    height,
    horizon,
    scale: SCALES[view.framing],
    light: { ...light, x: light.x * width, y: light.y * horizon },
    isStill: stance === 'thing' && !view.hasReferences,
    isAshore: place === 'beach' || (place === 'sea' && /^(stand|head|bust|thing)$/.test(stance ?? '')),
  }
  const isOutdoors = !/underwater|table|studio|abstract/.test(place)
  const land = (GROUNDS[place] ?? drawLand)(stage, random)
  const figures = drawActors(stage, random)
  return (
    (isOutdoors ? drawSky(stage, random) : '') +
    land.back +
    figures.behind +
    land.ground +
    figures.onGround +
    (land.front ?? '') +
    (isOutdoors ? drawWeather(stage, random) : '')
  )
}
