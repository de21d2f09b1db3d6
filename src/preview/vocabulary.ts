// The words that the renderer knows beside colours (colour-words.ts) and nouns (cast/). foreign-words.ts translates the
// most common ones of other languages. Other words only seed the random numbers.

export type Hour = 'dawn' | 'day' | 'dusk' | 'night' | 'grey'
export type Season = 'spring' | 'summer' | 'autumn' | 'winter'
export type Weather = 'rain' | 'snow' | 'fog' | 'storm'
/** A spectacle in the sky. */
export type SkyEvent = 'aurora' | 'fireworks' | 'rainbow'
export type View = 'close' | 'wide' | 'aerial'
export type Location =
  | 'mountains'
  | 'hills'
  | 'sea'
  | 'underwater'
  | 'city'
  | 'forest'
  | 'desert'
  | 'space'
  | 'sky'
  | 'table'
  | 'studio'
  | 'abstract'

export const TIMES: Readonly<Record<Exclude<Hour, 'grey'>, string>> = {
  dawn: 'dawn sunrise morning daybreak',
  day: 'day daytime noon midday sunny daylight sunshine sunlight afternoon blue-sky sunlit',
  dusk: 'dusk sunset evening twilight golden-hour sundown sunsets',
  night:
    'night midnight nocturnal moon moonlit moonlight stars starry neon noir cyberpunk aurora northern-lights fireworks nighttime',
}

/** Moods set the light where neither an hour nor the weather is named. */
export const MOODS: Readonly<Record<Hour, string>> = {
  dawn: 'pastel dreamy tender hope hopeful peaceful serene calm delicate',
  day: 'cheerful happy bright joy joyful fresh playful',
  dusk: 'golden warm romantic nostalgic cosy cozy love melancholic longing epic',
  night: 'dark spooky mysterious mystery scary horror lonely dream dramatic',
  grey: 'gloomy melancholy sad moody grief dystopian',
}

/** Weather that sets the light where no time of day is named. */
export const GREY = 'storm stormy rain rainy cloudy overcast fog foggy mist misty snowstorm blizzard ash'

export const SEASONS: Readonly<Record<Season, string>> = {
  spring: 'spring springtime april blossom blossoms cherry-blossom sakura',
  summer: 'summer summertime july tropical',
  autumn: 'autumn fall leaves autumnal october november harvest foliage',
  winter:
    'winter wintry snow snowy snowfall snowstorm blizzard ice icy frost frosty frozen arctic antarctica christmas',
}

export const WEATHERS: Readonly<Record<Weather, string>> = {
  snow: 'snowing snowfall snowflakes snowstorm blizzard',
  storm: 'storm stormy thunder thunderstorm lightning hurricane tempest',
  rain: 'rain rainy raining drizzle downpour monsoon wet',
  fog: 'fog foggy mist misty haze hazy',
}

export const SKY_EVENTS: Readonly<Record<SkyEvent, string>> = {
  aurora: 'aurora northern-lights southern-lights polar-lights',
  fireworks: 'firework fireworks',
  rainbow: 'rainbow rainbows',
}

export const VIEWS: Readonly<Record<View, string>> = {
  close: 'close closeup close-up macro detail portrait headshot extreme-close',
  wide: 'wide wide-shot establishing panorama panoramic landscape vista epic distant far ultrawide',
  aerial: 'aerial drone bird-eye birds-eye overhead top-down from-above above satellite-view eye-view',
}

/** Words for spring that mean trees in blossom. */
export const BLOSSOM = 'blossom blossoms cherry-blossom sakura'

/** Words for mountains that, together with the sea, mean its shore. */
export const CLIFF = 'cliff cliffs'

/** Words for the sea that mean its shore. */
export const BEACH = 'beach beaches shore seashore coast coastline seaside'

export const LOCATION_WORDS: Readonly<Record<Location, string>> = {
  mountains:
    'mountain mountains alps alpine peak peaks cliff cliffs ridge canyon himalaya himalayas volcano glacier fjord everest',
  hills:
    'hill hills meadow meadows field fields countryside farm grass grassland prairie savanna savannah vineyard garden gardens village pasture valley park steppe road highway campsite',
  underwater: 'underwater reef seabed coral deep-sea undersea aquarium',
  sea: 'sea ocean lake river waves shore seashore coast coastline beach beaches seaside harbour harbor island puddle pond bay lagoon sailing water wave',
  city: 'city neon cyberpunk street streets town urban skyline skyscraper skyscrapers tokyo paris london york shanghai berlin hong-kong manhattan rooftop rooftops alley downtown market traffic sidewalk crosswalk subway downtown monaco dubai chicago',
  forest:
    'forest forests waterfall waterfalls woods woodland jungle trees pines rainforest taiga grove bamboo',
  desert: 'desert deserts dune dunes sand sahara mars oasis arid badlands',
  space:
    'space planet planets galaxy galaxies cosmos cosmic orbit nebula universe interstellar moon-surface milky-way',
  sky: 'sky skies clouds cloud heaven flight airborne',
  table:
    'table tabletop countertop classroom hospital laboratory lab gym desk kitchen counter room interior cafe café restaurant window bedroom bar bakery plate still-life shelf office living-room library desk hotel-room kitchen-counter',
  studio:
    'studio product packshot icon logo minimal minimalist isolated pedestal podium backdrop commercial mockup',
  abstract:
    'abstract pattern texture geometric gradient shapes fluid psychedelic fractal generative wallpaper poster bauhaus kaleidoscope',
}
