// Values that all shots of a run share: place, colours, position of the light, and actors.
import { roleOf } from '../cast/cast-list.js'
import { type Palette, paletteFor } from '../palette.js'
import { between, pick, type Random, randomFrom } from '../random.js'
import { type Actor, type Reading, readPrompt } from '../read-prompt.js'
import type { Location } from '../vocabulary.js'

export interface Setting {
  readonly prompt: string
  /** Seed of the random numbers. */
  readonly seed: string
  readonly reading: Reading
  readonly place: Location
  readonly palette: Palette
  readonly actors: readonly Actor[]
  /** Position of the light, as shares of the width and of the height above the horizon. */
  readonly light: { readonly x: number; readonly y: number }
}

/** Subjects of each place. Determines the place of a subject if the prompt contains no place. */
const RESIDENTS: Readonly<Partial<Record<Location, string>>> = {
  desert: 'camel scorpion cactus snake racing-car',
  mountains: 'penguin polar-bear skier snowboarder goat eagle castle mount-fuji dragon person-climbing',
  hills: 'snowman elephant lion zebra giraffe horse cow ewe locomotive tractor windmill farmer',
  forest:
    'tiger monkey gorilla orangutan parrot panda fox wolf bear owl deer mushroom fire hedgehog shinto-shrine',
  city:
    'taxi bus tram automobile motor-scooter auto-rickshaw office-building robot detective ' +
    'red-paper-lantern helicopter hospital hotel school station factory classical-building ' +
    'department-store convenience-store tokyo-tower statue-of-liberty police-officer police-car ' +
    'ambulance fire-engine construction-worker',
  space: 'astronaut alien rocket satellite flying-saucer ringed-planet globe-showing-europe-africa',
  underwater: 'fish tropical-fish octopus squid jellyfish shark turtle',
  sky: 'airplane parachute',
  sea: 'person-surfing seal lighthouse palm-tree flamingo desert-island crab',
  table: 'cook health-worker scientist technologist teacher student office-worker',
}
const HOMES: ReadonlyMap<string, Location> = new Map(
  Object.entries(RESIDENTS).flatMap(([place, icons]) =>
    icons.split(' ').map((icon) => [icon, place as Location] as const),
  ),
)
const PRODUCTS = new RegExp(
  'shoe|bag|watch|phone|headphone|lotion|lipstick|gem|ring|crown|laptop|camera|perfume|sunglasses|backpack|boot|trophy|' +
    'microphone|t-shirt|dress|video-game|heart|umbrella|guitar|violin|coat|jeans|scarf|socks|gloves|kimono|necktie|hat|' +
    'glasses|sandal|briefcase|skate|skis|sword|dagger|shield|skull|gear|battery|bulb',
)
const HOMELY = ['hills', 'forest', 'mountains', 'hills'] as const
const BLOSSOMING = ['forest', 'hills'] as const
const SCENES = ['mountains', 'hills', 'sea', 'forest', 'desert', 'hills', 'sea', 'city'] as const
/** Subjects of each place for prompts without a subject, so that a scene has a focus and a scale. */
const GUESTS: Readonly<Partial<Record<Location, readonly [string, ...string[]]>>> = {
  mountains: ['hut', 'eagle', 'person-walking', 'tent', 'goat'],
  hills: ['house-with-garden', 'horse', 'kite', 'deciduous-tree', 'ewe', 'person-walking'],
  sea: ['sailboat', 'sailboat', 'canoe'],
  forest: ['deer', 'hut', 'owl', 'tent', 'fox'],
  desert: ['camel', 'cactus', 'camel', 'tent'],
  city: ['bicycle', 'person-walking', 'taxi', 'tram', 'cat'],
  space: ['rocket', 'astronaut', 'satellite'],
  sky: ['parachute', 'airplane', 'dove'],
  underwater: ['tropical-fish', 'turtle', 'octopus'],
  table: ['hot-beverage', 'books', 'potted-plant', 'candle'],
  studio: ['wrapped-gift', 'potted-plant', 'gem-stone'],
}

/** With `runId`, runs with the same prompt get different pictures. */
export function settingFor(prompt: string, runId?: string): Setting {
  const reading = readPrompt(prompt)
  const seed = runId === undefined ? prompt : `${prompt}\n${runId}`
  const random = randomFrom(`${seed}\nsetting`)
  const place = placeFor(reading, random, prompt)
  const palette = paletteFor(reading, place, randomFrom(`${seed}\ncolours`))
  const left = random() < 0.5
  const low = palette.hour === 'dusk' || palette.hour === 'dawn'
  const x = left ? between(random, 0.16, 0.36) : between(random, 0.64, 0.84)
  const y = low ? between(random, 0.68, 0.86) : between(random, 0.18, 0.36)
  return { prompt, seed, reading, place, palette, actors: castFor(reading, place, random), light: { x, y } }
}

function placeFor(
  { place, actors, season, weather, tints, view, isInBlossom, hasCliff, unknownSubject }: Reading,
  random: Random,
  prompt: string,
): Location {
  const rolled = pick(random, SCENES)
  if (unknownSubject !== undefined) return place ?? 'card'
  if (hasCliff && actors[0] !== undefined && HOMES.get(actors[0].icon) === 'sea') return 'sea'
  if (place !== undefined)
    return place === 'sea' &&
      !hasCliff &&
      actors[0] !== undefined &&
      HOMES.get(actors[0].icon) === 'underwater'
      ? 'underwater'
      : place
  const [first] = actors
  if (first === undefined) {
    const hasNoScene = !/\p{L}/u.test(prompt) || (tints.length > 0 && season === undefined)
    return hasNoScene ? 'abstract' : rolled
  }
  // A portrait shows a face, not a place.
  if (view === 'close' && (first.stance === 'head' || first.stance === 'bust')) return 'studio'
  const home = HOMES.get(first.icon)
  if (home !== undefined) return home
  if (first.stance === 'thing' && weather === undefined) return PRODUCTS.test(first.icon) ? 'studio' : 'table'
  if (first.stance === 'float') return 'sea'
  // Choose a place where blossoming trees are visible.
  return pick(random, isInBlossom ? BLOSSOMING : HOMELY)
}

function castFor(reading: Reading, place: Location, random: Random): readonly Actor[] {
  const guest = pick(random, GUESTS[place] ?? ['dove'])
  if (place === 'table' || place === 'studio') {
    // In "a doctor in a hospital", the building is not visible, so it is not drawn. "A church on a desk" keeps the
    // church, because there is no other actor.
    const inside = reading.actors.filter(({ stance }) => stance !== 'landmark')
    if (inside.length > 0) return inside
  }
  const isAlone = place === 'abstract' || reading.unknownSubject !== undefined || reading.hasExclusions
  if (reading.actors.length > 0 || isAlone) return reading.actors
  return [{ ...roleOf(guest), tint: undefined, count: 1 }]
}
