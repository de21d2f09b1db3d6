// The English words that set place, hour, season, weather, light and camera. Nouns: cast/cast-list.ts. Colours: colour.ts.
import { iconOfEmoji } from './cast/figure.js'

/** The words of each meaning. A mood sets the light only if the prompt has neither an hour nor weather. */
export const WORDS = {
  hour: {
    dawn: 'dawn sunrise morning daybreak',
    day: 'day daytime noon midday sunny daylight sunshine sunlight afternoon blue-sky sunlit',
    dusk: 'dusk sunset evening twilight golden-hour sundown sunsets',
    night: `night midnight nocturnal moon moonlit moonlight stars starry neon noir cyberpunk aurora northern-lights fireworks
      nighttime`,
  },
  mood: {
    dawn: 'pastel dreamy tender hope hopeful peaceful serene calm delicate',
    day: 'cheerful happy bright joy joyful fresh playful',
    dusk: 'golden warm romantic nostalgic cosy cozy love melancholic longing epic',
    night: 'dark spooky mysterious mystery scary horror lonely dream dramatic',
    grey: `storm stormy rain rainy raining drizzle downpour monsoon cloudy overcast fog foggy mist misty snowstorm blizzard ash
      gloomy melancholy sad moody grief dystopian`,
  },
  season: {
    spring:
      'spring springtime april blossom blossoms cherry-blossom cherry-blossoms cherry-tree cherry-trees sakura',
    summer: 'summer summertime july tropical',
    autumn: 'autumn fall leaves autumnal october november harvest foliage',
    winter: `winter wintry snow snowy snowing snowfall snowflakes snowstorm blizzard ice icy frost frosty frozen arctic
      antarctica christmas`,
  },
  weather: {
    snow: 'snowing snowfall snowflakes snowstorm blizzard',
    storm: 'storm stormy thunder thunderstorm lightning hurricane tempest',
    rain: 'rain rainy raining drizzle downpour monsoon wet',
    fog: 'fog foggy mist misty haze hazy',
  },
  skyEvent: {
    aurora: 'aurora northern-lights southern-lights polar-lights',
    fireworks: 'firework fireworks',
    rainbow: 'rainbow rainbows',
  },
  view: {
    close: 'close closeup close-up macro detail portrait headshot extreme-close',
    wide: `wide wide-shot establishing panorama panoramic landscape vista epic distant far ultrawide aerial drone-shot
      drone-view drone-footage bird-eye birds-eye overhead top-down from-above satellite-view`,
  },
  place: {
    mountains: `mountain mountains alps alpine peak peaks cliff cliffs ridge canyon himalaya himalayas volcano glacier fjord
      everest`,
    hills: `hill hills meadow meadows field fields countryside farm grass grassland prairie savanna savannah vineyard garden
      gardens village pasture valley park steppe road highway campsite`,
    underwater:
      'underwater reef seabed coral deep-sea undersea aquarium sea-floor sea-bed ocean-floor under-water',
    beach: 'shore seashore coast coastline beach beaches seaside',
    sea: 'sea ocean lake river waves harbour harbor island puddle pond bay lagoon sailing water wave',
    city: `city neon cyberpunk street streets town urban skyline skyscraper skyscrapers tokyo paris london york shanghai berlin
      hong-kong manhattan rooftop rooftops alley downtown market traffic sidewalk crosswalk subway monaco dubai chicago`,
    forest: `forest forests waterfall waterfalls woods woodland jungle trees pines rainforest taiga grove bamboo cherry-blossom
      cherry-blossoms cherry-tree cherry-trees sakura`,
    desert: 'desert deserts dune dunes sand sahara mars oasis arid badlands',
    space:
      'space planet planets galaxy galaxies cosmos cosmic orbit nebula universe interstellar moon-surface milky-way',
    sky: 'sky skies clouds cloud heaven flight airborne',
    table: `table tabletop countertop classroom hospital laboratory lab gym desk kitchen counter room interior cafe café
      restaurant window bedroom bar bakery plate still-life shelf office living-room library hotel-room kitchen-counter
      workshop`,
    studio:
      'studio product packshot icon logo minimal minimalist isolated pedestal podium backdrop commercial mockup',
    abstract: `abstract pattern texture geometric gradient shapes fluid psychedelic fractal generative wallpaper poster bauhaus
      kaleidoscope`,
  },
}

export type Hour = keyof typeof WORDS.mood
export type Place = keyof typeof WORDS.place

/** What one word says. */
export type Meaning = { readonly [Field in keyof typeof WORDS]?: keyof (typeof WORDS)[Field] }

/** Returns the words of a table of lists, each with the key of its list. */
export const keysByWord = <Key extends string>(table: Readonly<Partial<Record<Key, string>>>) =>
  new Map(
    (Object.entries(table) as [Key, string][]).flatMap(([key, list]) =>
      list.split(/\s+/).map((word) => [word, key] as const),
    ),
  )

const meanings = new Map<string, Meaning>()
for (const [field, table] of Object.entries(WORDS))
  for (const [word, value] of keysByWord(table)) meanings.set(word, { ...meanings.get(word), [field]: value })

/** Returns the meaning of a word, or of two words joined with a hyphen. */
export const meaningOf = (word: string): Meaning | undefined => meanings.get(word)

/** Emoji that mean a time, a place or weather: 🌙🦊 means a fox at night, not a fox and a moon. */
const SIGNS = `🌑🌒🌓🌔🌕🌖🌗🌘🌙🌚🌛🌜🌝 moon,⭐🌟🌠🌌✨ stars,☀🌞🌤 sunny,🌈 rainbow,🌅🌄 sunrise,🌇🌆 city sunset,🌃 city night,
  🏙 city,🎆🎇 fireworks,🌊 sea,🏖 beach,🏔⛰🗻 mountains,🏜 desert,🏞 valley,❄🌨 snowing,🌧☔ rain,⛈🌩⚡🌪 storm,🌫 fog,
  ☁⛅🌥🌦 overcast,🍂🍁 autumn,🌸 cherry-blossom`
const signs = new Map(
  SIGNS.split(',').flatMap((row) => {
    const [emoji = '', ...words] = row.trim().split(' ')
    return [...emoji].map((sign) => [sign, words.join(' ')] as const)
  }),
)

const PICTOGRAPH = '\\p{Extended_Pictographic}[\\ufe0f\\u{1f3fb}-\\u{1f3ff}]*'
const EMOJI = new RegExp(`${PICTOGRAPH}(?:\\u200d${PICTOGRAPH})*`, 'gu')
const nameOf = (emoji: string) => iconOfEmoji(emoji)?.replaceAll('-', ' ')

/** Replaces each emoji by its name, as in `[fox]`. */
export const emojiAsNames = (prompt: string): string =>
  prompt.replace(EMOJI, (emoji) => ` [${nameOf(emoji) ?? 'emoji'}] `)

/** Replaces each emoji by the words that it means. */
export const emojiAsWords = (prompt: string): string =>
  prompt.replace(EMOJI, (emoji) => `, ${signs.get([...emoji][0] ?? '') ?? nameOf(emoji) ?? ''}, `)

const wordSet = (list: string): ReadonlySet<string> => new Set(list.trim().split(/\s+/))

export const ARTICLES = wordSet(
  `a an the one some this these my his her their its our your two three four five many several both`,
)
/** Words that begin a phrase of place, time or manner, which seldom contains the subject. */
export const PREPOSITIONS = wordSet(
  `in on at by near next under over above below behind beside between through across into onto from to for with against along
  around inside outside before after during upon within beneath towards toward among like as off up down past`,
)
/** Other words that separate phrases. */
export const CONNECTIVES = wordSet(
  `of and or but while that which who where when is are was were be being has have had it there then than they him s`,
)
/** Words that describe the picture, count, or say what happens, and film terms: they cannot be the subject. */
export const NEUTRAL = wordSet(
  `not only just camera photo photograph photography photorealistic picture image shot shots scene view frame still render
  rendering rendered
  illustration illustrated painting drawing sketch watercolor watercolour oil acrylic ink pencil pixel art artwork artstation
  anime cartoon comic vector isometric flat style styled aesthetic concept design cinematic cinema film movie lens mm iso bokeh
  focus depth light lights lighting lit soft hard warm cool natural volumetric rim shadow shadows contrast colour color colours
  colors coloured colored palette tone tones mood atmosphere atmospheric realistic hyperrealistic surreal detailed details
  highly ultra very quality resolution hd uhd k fps slow fast motion dolly tracking pan zoom angle composition background
  foreground empty text texts words fantasy rays letters lettering watermark watermarks title caption blur blurry noise grain
  footage video clip loop sequence hour timelapse variation version beautiful stunning masterpiece trending set left right
  center centre middle front side top bottom full body half upper something anything nothing everything standing sitting lying
  walking black white looking seen wearing holding subject character characters sheet series reference same long short new
  young first second last family herd flock caravan pack swarm colony pair trio couple row bowl glass cup slice bunch pile
  asleep awake alone afloat alive ablaze apart away high low mid wide ran sat stood wore held lay slept flew swam rose fell run
  walk sit stand look play hold wear fly swim sleep carry watch-the watch-a watch-as watches-the watches-a watches-as the-camera
  handheld-camera follows pans moves pushes zooms tracks glides camera-follows camera-pans camera-moves camera-pushes camera-zooms
  camera-slowly camera-movement step jump pose key-light ring-light monochrome greyscale grayscale key-shot hero-shot crane-shot`,
)
