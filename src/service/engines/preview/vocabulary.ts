// The words the renderer knows beside colours (tints.ts) and nouns (cast/). Plain English, because that is what most
// prompts are written in, and the commonest words of Chinese, which has no spaces to find words by; a word in none of
// the lists is no mistake, it only moves the dice.

export type Hour = 'dawn' | 'day' | 'dusk' | 'night' | 'grey'
export type Season = 'spring' | 'summer' | 'autumn' | 'winter'
export type Weather = 'rain' | 'snow' | 'fog' | 'storm'
export type View = 'close' | 'wide' | 'aerial'
export type Place =
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
  dawn: 'dawn sunrise morning daybreak pastel dreamy tender 清晨 日出 早晨 黎明',
  day: 'day daytime noon midday sunny daylight afternoon blue-sky sunlit cheerful happy bright 白天 晴天 中午',
  dusk: 'dusk sunset evening twilight golden golden-hour sundown warm romantic nostalgic cosy cozy 黄昏 日落 傍晚 夕阳',
  night:
    'night midnight nocturnal moon moonlit moonlight stars starry neon dark noir cyberpunk spooky aurora 夜 夜晚 月亮 星空',
}

/** Weather that sets the light where no time of day is named. */
export const GREY =
  'storm stormy rain rainy cloudy overcast fog foggy mist misty snowstorm blizzard ash monochrome gloomy melancholy sad moody'

export const SEASONS: Readonly<Record<Season, string>> = {
  spring: 'spring springtime april may blossom blossoms cherry-blossom sakura 春 春天 樱花',
  summer: 'summer summertime july tropical 夏 夏天',
  autumn: 'autumn fall autumnal october november harvest foliage 秋 秋天',
  winter:
    'winter wintry snow snowy snowfall snowstorm blizzard ice icy frost frosty frozen arctic antarctica christmas 冬 雪 冬天',
}

export const WEATHERS: Readonly<Record<Weather, string>> = {
  snow: 'snowing snowfall snowflakes snowstorm blizzard 下雪',
  storm: 'storm stormy thunder thunderstorm lightning hurricane tempest',
  rain: 'rain rainy raining drizzle downpour monsoon wet 雨',
  fog: 'fog foggy mist misty haze hazy smoke smoky steam 雾',
}

export const VIEWS: Readonly<Record<View, string>> = {
  close: 'close closeup close-up macro detail portrait headshot extreme-close 特写',
  wide: 'wide wide-shot establishing panorama panoramic landscape vista epic distant far ultrawide',
  aerial: 'aerial drone bird-eye birds-eye overhead top-down from-above above satellite-view 航拍',
}

export const PLACE_WORDS: Readonly<Record<Place, string>> = {
  mountains:
    'mountain mountains alps alpine peak peaks cliff cliffs ridge canyon himalaya himalayas volcano glacier fjord everest 山',
  hills:
    'hill hills meadow meadows field fields countryside farm grass grassland prairie savanna savannah vineyard garden gardens village pasture valley park steppe 草地 田野',
  underwater: 'underwater reef seabed coral deep-sea undersea aquarium 海底',
  sea: 'sea ocean lake river waves shore coast coastline beach harbour harbor island puddle pond bay lagoon sailing waterfall water wave 海 湖 河',
  city: 'city street streets town urban skyline skyscraper skyscrapers tokyo paris london york shanghai berlin hong-kong manhattan rooftop rooftops alley downtown market road highway traffic sidewalk crossing subway 城市 街',
  forest: 'forest forests woods woodland jungle trees pines rainforest taiga grove bamboo 森林 树林',
  desert: 'desert deserts dune dunes sand sahara mars oasis arid badlands 沙漠',
  space:
    'space planet planets galaxy galaxies cosmos cosmic orbit nebula universe interstellar moon-surface milky-way 太空 宇宙',
  sky: 'sky skies clouds cloud heaven flight airborne 天空 云',
  table:
    'table desk kitchen counter room interior cafe café restaurant window bedroom bar bakery plate still-life shelf office living-room 桌',
  studio:
    'studio product packshot icon logo minimal minimalist isolated pedestal podium backdrop commercial mockup 产品',
  abstract:
    'abstract pattern texture geometric gradient shapes fluid psychedelic fractal generative wallpaper poster bauhaus kaleidoscope 抽象',
}

/** Nouns of Chinese, which is matched by what a prompt contains. */
export const CHINESE: Readonly<Record<string, string>> = {
  狐狸: 'fox',
  狐: 'fox',
  猫: 'cat',
  狗: 'dog',
  马: 'horse',
  熊猫: 'panda',
  老虎: 'tiger',
  鸟: 'bird',
  鱼: 'fish',
  龙: 'dragon',
  兔: 'rabbit',
  女孩: 'girl',
  女人: 'woman',
  男人: 'man',
  老人: 'old-man',
  孩子: 'child',
  船: 'sailboat',
  汽车: 'automobile',
  火车: 'locomotive',
  飞机: 'airplane',
  灯笼: 'red-paper-lantern',
  寺: 'japanese-castle',
  房子: 'house',
  茶: 'teacup-without-handle',
  咖啡: 'hot-beverage',
  面: 'steaming-bowl',
  花: 'cherry-blossom',
  树: 'deciduous-tree',
}
