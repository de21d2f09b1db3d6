// The English words that set place, hour, season, weather, light, camera and colour, and those that only join others.
import { type Oklch, oklch } from 'culori'

/** The words of each meaning. A mood sets the light only if the prompt has neither an hour nor weather. */
export const WORDS = {
  hour: {
    dawn: 'dawn sunrise morning daybreak',
    day: 'day daytime noon midday sunny daylight sunshine sunlight afternoon blue-sky sunlit sun',
    dusk: 'dusk sunset evening twilight golden-hour sundown sunsets',
    night: `night midnight nocturnal moon crescent-moon full-moon star glowing-star moonlit moonlight stars starry neon noir cyberpunk aurora northern-lights
      nighttime`,
  },
  mood: {
    dawn: 'pastel dreamy tender hope hopeful peaceful serene calm delicate',
    day: 'cheerful happy bright joy joyful fresh playful',
    dusk: 'golden warm romantic nostalgic cosy cozy melancholic longing epic',
    night: 'dark spooky mysterious mystery scary horror lonely dream dramatic',
    grey: `storm stormy rain rainy raining drizzle downpour monsoon cloudy overcast fog foggy mist misty snowstorm blizzard
      gloomy melancholy sad moody grief dystopian`,
  },
  season: {
    spring:
      'spring springtime april blossom blossoms cherry-blossom cherry-blossoms cherry-tree cherry-trees sakura',
    summer: 'summer summertime july tropical',
    autumn: 'autumn fall leaves autumnal october november harvest foliage',
    winter: `winter wintry snow snowflake snow-capped snowy snowing snowfall snowflakes snowstorm blizzard ice icy frost frosty frozen arctic
      antarctica christmas`,
  },
  weather: {
    snow: 'snowflake snowing snowfall snowflakes snowstorm blizzard',
    storm: 'storm stormy thunder thunderstorm lightning high-voltage hurricane tempest',
    rain: 'rain rainy raining drizzle downpour monsoon',
    fog: 'fog foggy mist misty haze hazy',
  },
  sky: { aurora: 'aurora northern-lights southern-lights polar-lights' },
  view: {
    close: 'close closeup close-up macro detail portrait headshot extreme-close',
    wide: `wide wide-shot establishing panorama panoramic landscape vista epic distant far ultrawide aerial drone-shot
      drone-view drone-footage bird-s-eye birds-eye overhead top-down from-above satellite-view`,
  },
  place: {
    mountains: `mountain mountains alps alpine peak peaks cliff cliffs ridge canyon himalaya himalayas volcano glacier fjord
      everest`,
    hills: `hill hills meadow meadows field fields countryside grass grassland prairie savanna savannah vineyard
      pasture valley park steppe road highway garden gardens farm`,
    underwater: 'underwater reef seabed coral deep-sea undersea sea-floor sea-bed ocean-floor under-water',
    beach: 'shore seashore coast coastline beach beaches seaside',
    sea: 'sea ocean lake river waves harbour harbor pond bay lagoon wave water-wave',
    city: `city neon cyberpunk street streets town urban cityscape skyline skyscrapers tokyo paris london york shanghai berlin hong-kong
      manhattan rooftop rooftops alley downtown sidewalk dubai chicago`,
    forest: `forest forests waterfall waterfalls woods woodland jungle pines rainforest taiga grove cherry-blossom
      cherry-blossoms cherry-tree cherry-trees sakura`,
    desert: 'desert deserts dune dunes sand sahara mars oasis badlands',
    space:
      'space planet planets galaxy galaxies cosmos cosmic orbit nebula universe interstellar moon-surface milky-way',
    table: `table tabletop countertop classroom desk kitchen room interior cafe café restaurant window bedroom bakery
      still-life shelf office living-room library kitchen-counter workshop fireplace`,
    studio: `studio product packshot icon logo minimal minimalist isolated pedestal podium backdrop commercial mockup
      abstract pattern texture geometric gradient poster wallpaper flat-lay product-shot studio-light studio-lighting`,
  },
} as const

export type Hour = keyof typeof WORDS.mood
export type Place = keyof typeof WORDS.place

/** What one word says. */
export type Meaning = { readonly [Field in keyof typeof WORDS]?: keyof (typeof WORDS)[Field] }

/** Returns the words of a table of lists, each with the key of its list. */
export const keysByWord = (table: Readonly<Record<string, string>>): ReadonlyMap<string, string> =>
  new Map(Object.entries(table).flatMap(([key, list]) => list.split(/\s+/).map((word) => [word, key])))

/** The meaning of each word, or of words joined with hyphens. */
export const meanings = new Map<string, Meaning>()
for (const [field, table] of Object.entries(WORDS))
  for (const [word, value] of keysByWord(table)) meanings.set(word, { ...meanings.get(word), [field]: value })

/** Names of colours, without those of plants, food and places. CSS has most of them. */
const COLOURS = `red crimson orange gold yellow lime green teal turquoise cyan azure blue navy indigo violet purple:#7d3cc8 lavender
  magenta fuchsia pink coral white silver grey gray black brown:#8d5a3b beige olive maroon salmon cream:#fbf0d5 mint:#a6e3c8
  emerald:#1fa86b amber:#f5a623 rust:#b7472a copper:#b87333`
export const tints = new Map(
  COLOURS.split(/\s+/).map((pair) => {
    const [name = '', shade = name] = pair.split(':')
    return [name, oklch(shade) as Oklch]
  }),
)

const wordSet = (list: string): ReadonlySet<string> => new Set(list.trim().split(/\s+/))

const anyOf = (list: string): string => list.trim().replace(/\s+/g, '|')

/** Words that separate phrases: articles and numbers, prepositions, and others. As alternatives of an expression. */
export const articles = anyOf(
  'an? the one some this these my his her their its our your two three four five many several both',
)
export const prepositions =
  anyOf(`in on at by near next under over above below behind beside between through across into onto from
  to for with against along around inside outside before after during upon within beneath towards? among like as off up down past`)
export const joining = `${articles}|${prepositions}|${anyOf(`of and or but while that which who where when is are was were be being
  has have had it there then than they him`)}`

/** Words that describe the picture, count, or say what happens, and film terms: they cannot be the subject. */
export const neutral = wordSet(
  `not only just camera photo photograph photography photorealistic picture image shot shots scene view frame still render
  rendering rendered illustration illustrated painting drawing sketch watercolor watercolour oil acrylic ink pencil pixel art
  artwork artstation anime cartoon comic vector isometric flat style styled aesthetic concept design cinematic cinema film movie
  lens mm iso bokeh focus depth light lights lighting lit soft hard warm cool natural volumetric rim shadow shadows contrast
  color colour colors colours coloured colored palette tone tones mood atmosphere atmospheric realistic hyperrealistic surreal
  detailed details highly ultra very quality resolution hd uhd k fps slow fast motion dolly tracking pan zoom angle composition
  background foreground empty text texts words fantasy rays letters lettering watermark watermarks title caption blur blurry
  noise grain footage video clip loop sequence hour timelapse variation version beautiful stunning masterpiece trending set left
  right center centre middle front side top bottom full body half upper something anything nothing everything standing sitting
  lying walking black white looking seen wearing holding subject character characters sheet series reference same long short new
  young first second last family herd flock caravan pack swarm colony pair trio row bowl glass cup slice bunch pile
  asleep awake alone afloat alive ablaze apart away high low mid wide ran sat stood wore held lay slept flew swam rose fell run
  walk sit stand look play hold wear fly swim sleep carry watch-the watch-a watch-as watches-the watches-a watches-as the-camera
  handheld-camera follows pans moves pushes zooms tracks glides camera-follows camera-pans camera-moves camera-pushes camera-zooms
  camera-slowly camera-movement step jump pose key-light ring-light monochrome greyscale grayscale key-shot hero-shot crane-shot
  quiet silent abandoned busy narrow crowded ancient modern rusty ruined broken app up s wet sky skies clouds cloud old little small big large huge tiny majestic cute lovely smiling`,
)
/** Ages and genders: a figure of a person that does not show them is another person. */
export const ages = wordSet('old elderly aged senior middle-aged baby male female')
