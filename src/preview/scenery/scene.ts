// Chooses place, colours, light and figures of a run, and composes one flat stage: the sky, the land with the figures on
// it, and the weather in front. The same arguments give the same drawing.
import { roleOf } from '../cast/cast-list.js'
import { type Palette, paletteFor } from '../palette.js'
import { between, pick, type Random, randomFrom } from '../random.js'
import { type Actor, type Reading, readPrompt } from '../read-prompt.js'
import type { Size } from '../render-request.js'
import { GROUND_OF, type Place } from '../vocabulary.js'
import { drawActors } from './actors.js'
import { drawCity, drawRoom } from './built.js'
import { drawLand } from './land.js'
import { drawSky, drawWeather } from './sky.js'
import type { Stage, View } from './stage.js'
import { drawWater } from './water.js'

/** Values that all shots of a run share. */
export interface Setting {
  readonly prompt: string
  /** Seed of the random numbers. */
  readonly seed: string
  readonly reading: Reading
  readonly place: Place
  readonly palette: Palette
  readonly actors: readonly Actor[]
  /** Position of the light, as shares of the width and of the height above the horizon. */
  readonly light: { readonly x: number; readonly y: number }
}

/** With `runId`, runs with the same prompt get different pictures. References take the place of an added subject. */
export function settingFor(prompt: string, runId?: string, hasReferences = false): Setting {
  const reading = readPrompt(prompt)
  const seed = runId === undefined ? prompt : `${prompt}\n${runId}`
  const random = randomFrom(`${seed}\nsetting`)
  const place = placeFor(reading, random, prompt)
  const palette = paletteFor(reading, place, randomFrom(`${seed}\ncolours`))
  const x = random() < 0.5 ? between(random, 0.16, 0.36) : between(random, 0.64, 0.84)
  const isLow = palette.hour === 'dusk' || palette.hour === 'dawn'
  const y = isLow ? between(random, 0.68, 0.86) : between(random, 0.18, 0.36)
  return {
    prompt,
    seed,
    reading,
    place,
    palette,
    actors: castFor(reading, place, random, hasReferences),
    light: { x, y },
  }
}

/** For each place: the subjects whose place it is if the prompt contains none, and after the bar, guests without a subject. */
const RESIDENTS: Readonly<Partial<Record<Place, string>>> = {
  mountains: `penguin polar-bear skier snowboarder goat eagle castle mount-fuji dragon person-climbing | hut eagle tent goat`,
  hills: `snowman elephant lion zebra giraffe horse cow ewe locomotive tractor windmill farmer
    | house-with-garden horse kite deciduous-tree ewe person-walking`,
  forest: `tiger monkey gorilla orangutan parrot panda fox wolf bear owl deer mushroom fire hedgehog shinto-shrine
    | deer hut owl tent fox`,
  desert: 'camel scorpion cactus snake racing-car | camel cactus tent',
  space:
    'astronaut alien rocket satellite flying-saucer ringed-planet globe-showing-europe-africa | rocket astronaut satellite',
  sky: 'airplane parachute | parachute airplane dove',
  sea: 'person-surfing seal lighthouse palm-tree flamingo heron desert-island crab | sailboat canoe',
  beach: '| sailboat palm-tree crab',
  underwater: 'fish tropical-fish octopus squid jellyfish shark turtle | tropical-fish turtle octopus',
  city: `taxi bus tram automobile motor-scooter auto-rickshaw office-building robot detective red-paper-lantern helicopter
    hospital hotel school station factory classical-building department-store convenience-store tokyo-tower
    statue-of-liberty police-officer police-car ambulance fire-engine construction-worker
    | bicycle person-walking taxi tram cat`,
  table: `cook health-worker scientist technologist teacher student office-worker | hot-beverage books potted-plant candle`,
  studio: '| wrapped-gift potted-plant gem-stone',
}
const iconsOf = (place: string, part: 0 | 1) =>
  (RESIDENTS[place as Place]?.split('|')[part] ?? '').trim().split(/\s+/)
const homes = new Map(
  Object.keys(RESIDENTS).flatMap((place) => iconsOf(place, 0).map((icon) => [icon, place as Place] as const)),
)
const PRODUCT = new RegExp(
  `shoe|bag|watch|phone|lotion|lipstick|gem|ring|crown|laptop|camera|perfume|sunglasses|pack|boot|trophy|shirt|dress|game|heart
  |umbrella|guitar|violin|coat|jeans|scarf|socks|gloves|kimono|necktie|hat|glasses|sandal|briefcase|skate|skis|sword|dagger
  |shield|skull|gear|battery|bulb`.replace(/\s/g, ''),
)

function placeFor(
  { place, actors, season, weather, tints, view, isInBlossom, unknownSubject }: Reading,
  random: Random,
  prompt: string,
): Place {
  const rolled = pick(random, [
    'mountains',
    'hills',
    'sea',
    'forest',
    'desert',
    'hills',
    'sea',
    'city',
  ] as const)
  const [first] = actors
  const home = homes.get(first?.icon ?? '')
  if (place === 'sea' && home === 'underwater') return 'underwater'
  if (place !== undefined) return place
  if (unknownSubject !== undefined) return 'card'
  if (first === undefined)
    return !/\p{L}/u.test(prompt) || (tints.length > 0 && season === undefined) ? 'abstract' : rolled
  // A portrait shows a face, not a place, unless the prompt has weather.
  const isPerson = first.stance === 'head' || first.stance === 'bust'
  if (view === 'close' && isPerson && weather === undefined && season === undefined) return 'studio'
  if (home !== undefined) return home
  if (first.stance === 'thing' && weather === undefined) return PRODUCT.test(first.icon) ? 'studio' : 'table'
  // The trees of a forest are near enough to show their blossom.
  if (isInBlossom) return 'forest'
  return first.stance === 'float' ? 'sea' : pick(random, ['hills', 'forest', 'hills'] as const)
}

function castFor(
  { actors, unknownSubject, hasExclusions }: Reading,
  place: Place,
  random: Random,
  hasReferences: boolean,
) {
  const guest = pick(random, iconsOf(place, 1) as [string, ...string[]])
  // A coral of an abstract picture is a colour.
  if (place === 'abstract') return actors.filter(({ icon }) => icon !== 'coral')
  // In "a doctor in a hospital", the building is not visible. "A church on a desk" keeps the church.
  const inside = actors.filter(({ stance }) => stance !== 'landmark')
  if ((place === 'table' || place === 'studio') && inside.length > 0) return inside
  const isAlone = unknownSubject !== undefined || hasExclusions || hasReferences || guest === ''
  return actors.length > 0 || isAlone ? actors : [{ ...roleOf(guest), tint: undefined, count: 1 }]
}

/** Share of the height above the horizon, and size of objects. */
const FRAMINGS: Readonly<Record<View['framing'], readonly [number, number]>> = {
  wide: [0.56, 1],
  middle: [0.54, 1.25],
  close: [0.58, 1.7],
}
const GROUNDS = { land: drawLand, water: drawWater, city: drawCity, room: drawRoom }

export interface Scene extends Size {
  /** SVG elements in stage units: the shorter side is 1000. */
  readonly drawing: string
  /** Side of the frame with free space: 1 for the right side. The light comes from there. */
  readonly freeSide: -1 | 1
}

/** `size` is in pixels. `number` is the number of the shot, which seeds the shapes of hills and clouds. */
export function composeScene(setting: Setting, size: Size, number: number, view: View): Scene {
  const { seed, reading, place, palette, actors, light } = setting
  const random = randomFrom(`${seed}\nview ${number}`)
  const unit = 1000 / Math.min(size.width, size.height)
  const [width, height] = [size.width * unit, size.height * unit]
  const [share, scale] = FRAMINGS[view.framing]
  const horizon = height * share * (place === 'sky' ? 1.06 : reading.view === 'aerial' ? 0.62 : 1)
  const [first] = actors
  const side = light.x < 0.5 ? -1 : 1
  const stage: Stage = {
    ...view,
    width,
    height,
    horizon,
    scale,
    place,
    reading,
    palette,
    light: { x: light.x * width, y: light.y * horizon, side },
    isStill: first?.stance === 'thing' && !view.hasReferences,
    isAshore: place === 'beach' || (place === 'sea' && /^(stand|head|bust|thing)$/.test(first?.stance ?? '')),
  }
  const isOutdoors = GROUND_OF[place] !== 'room' && place !== 'underwater'
  const sky = isOutdoors ? drawSky(stage, random) : ''
  const { back, ground, front } = GROUNDS[GROUND_OF[place]](stage, random)
  const figures = drawActors(stage, actors, random)
  const weather = isOutdoors || place === 'card' ? drawWeather(stage, random) : ''
  const drawing = sky + back + figures.behind + ground + figures.onGround + front + weather
  return { width, height, drawing, freeSide: side }
}
