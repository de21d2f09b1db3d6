// The words the renderer knows. Plain English, because that is what most prompts are written in; a word in another
// list, or in none, is no mistake, it only moves the dice.

export type Hour = 'dawn' | 'day' | 'dusk' | 'night' | 'grey'
export type Place = 'mountains' | 'hills' | 'sea' | 'city' | 'forest' | 'desert' | 'space' | 'studio'
export type Subject =
  | 'boat'
  | 'house'
  | 'tree'
  | 'figure'
  | 'animal'
  | 'bird'
  | 'balloon'
  | 'tower'
  | 'vehicle'
  | 'flower'

/** A colour word's place on the OKLCH wheel and how much colour it carries: 0 for white, grey and black. */
export interface Tint {
  readonly hue: number
  readonly strength: number
  /** Where a colour is by its nature light or dark. */
  readonly lightness?: number
}

export const TIMES: Readonly<Record<Exclude<Hour, 'grey'>, string>> = {
  dawn: 'dawn sunrise morning daybreak spring pastel misty mist',
  day: 'day noon midday sunny daylight afternoon summer bright blue-sky',
  dusk: 'dusk sunset evening twilight autumn golden warm sundown candle candlelight fire',
  night: 'night midnight nocturnal moon moonlit moonlight stars starry neon dark noir cyberpunk',
}

/** Weather that sets the light where no time of day is named. */
export const WEATHER: Readonly<Record<'grey', string>> = {
  grey: 'storm stormy rain rainy cloudy overcast fog foggy snow snowy winter snowstorm blizzard ash monochrome',
}

export const PLACE_WORDS: Readonly<Record<Place, string>> = {
  mountains:
    'mountain mountains alps alpine peak peaks cliff cliffs ridge canyon himalaya volcano glacier valley',
  hills:
    'hill hills meadow field fields countryside farm grass prairie savanna vineyard garden village pasture',
  sea: 'sea ocean lake river water waves wave shore coast beach harbour harbor island puddle pond bay rain sailing',
  city: 'city street streets town urban skyline skyscraper tokyo paris london york rooftop rooftops alley downtown',
  forest: 'forest woods jungle trees pine pines woodland rainforest taiga grove',
  desert: 'desert dune dunes sand sahara mars canyon oasis arid',
  space: 'space planet planets galaxy cosmos astronaut spaceship rocket asteroid orbit nebula alien universe',
  studio:
    'studio portrait still product icon logo flat abstract minimal macro closeup poster room interior table',
}

export const SUBJECT_WORDS: Readonly<Record<Subject, string>> = {
  boat: 'boat boats ship ships sailboat yacht sail raft canoe ferry submarine',
  house: 'house home cabin cottage hut barn castle temple church village building shop',
  tree: 'tree oak bonsai palm willow sapling',
  figure:
    'man woman person girl boy child children people dancer astronaut robot king queen soldier monk he she ' +
    'portrait hero knight wizard samurai couple runner surfer climber musician chef',
  animal:
    'fox dog cat horse wolf bear lion tiger deer cow sheep goat rabbit elephant pig mouse puppy kitten animal dragon',
  bird: 'bird birds eagle crow raven owl swan gull seagull crane cranes heron parrot duck butterfly',
  balloon: 'balloon balloons airship zeppelin lantern lanterns kite',
  tower: 'tower lighthouse windmill rocket skyscraper obelisk statue chimney monument',
  vehicle: 'car cars truck train bus van tram taxi motorcycle bicycle bike tank carriage',
  flower: 'flower flowers rose tulip lotus sunflower daisy poppy orchid bouquet',
}

export const TINTS: Readonly<Record<string, Tint>> = {
  red: { hue: 27, strength: 1.2 },
  crimson: { hue: 20, strength: 1.2 },
  scarlet: { hue: 30, strength: 1.2 },
  rust: { hue: 42, strength: 1 },
  orange: { hue: 55, strength: 1.2 },
  amber: { hue: 70, strength: 1.1 },
  copper: { hue: 50, strength: 0.8 },
  brown: { hue: 58, strength: 0.6, lightness: 0.44 },
  sepia: { hue: 75, strength: 0.5 },
  gold: { hue: 85, strength: 1.1 },
  golden: { hue: 82, strength: 1.1 },
  yellow: { hue: 98, strength: 1.2 },
  beige: { hue: 85, strength: 0.4, lightness: 0.86 },
  cream: { hue: 90, strength: 0.4, lightness: 0.92 },
  lime: { hue: 125, strength: 1.2 },
  olive: { hue: 112, strength: 0.7 },
  green: { hue: 145, strength: 1.1 },
  emerald: { hue: 160, strength: 1.2 },
  mint: { hue: 165, strength: 0.7 },
  jade: { hue: 162, strength: 0.9 },
  teal: { hue: 190, strength: 1 },
  turquoise: { hue: 195, strength: 1 },
  cyan: { hue: 205, strength: 1.1 },
  azure: { hue: 235, strength: 1.1 },
  blue: { hue: 255, strength: 1.2 },
  navy: { hue: 262, strength: 1, lightness: 0.36 },
  indigo: { hue: 278, strength: 1.1 },
  violet: { hue: 295, strength: 1.1 },
  purple: { hue: 305, strength: 1.1 },
  lavender: { hue: 300, strength: 0.6 },
  lilac: { hue: 310, strength: 0.6 },
  magenta: { hue: 330, strength: 1.3 },
  fuchsia: { hue: 335, strength: 1.3 },
  pink: { hue: 355, strength: 1 },
  rose: { hue: 8, strength: 0.9 },
  coral: { hue: 35, strength: 1 },
  white: { hue: 240, strength: 0.15, lightness: 0.95 },
  silver: { hue: 250, strength: 0.12, lightness: 0.8 },
  grey: { hue: 260, strength: 0.1, lightness: 0.6 },
  gray: { hue: 260, strength: 0.1, lightness: 0.6 },
  black: { hue: 270, strength: 0.1, lightness: 0.22 },
  monochrome: { hue: 260, strength: 0 },
}
