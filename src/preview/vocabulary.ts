// The words that the renderer knows, except colours (colour.ts) and nouns (cast/cast-list.ts). Also the English
// translations of the most common words of other languages, and of emoji.

export type Hour = 'dawn' | 'day' | 'dusk' | 'night' | 'grey'
export type Season = 'spring' | 'summer' | 'autumn' | 'winter'
export type Weather = 'rain' | 'snow' | 'fog' | 'storm'
/** A special event in the sky. */
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
  /** Background of the card of an unknown subject. */
  | 'card'

export const TIMES: Readonly<Record<Exclude<Hour, 'grey'>, string>> = {
  dawn: 'dawn sunrise morning daybreak',
  day: 'day daytime noon midday sunny daylight sunshine sunlight afternoon blue-sky sunlit',
  dusk: 'dusk sunset evening twilight golden-hour sundown sunsets',
  night:
    'night midnight nocturnal moon moonlit moonlight stars starry neon noir cyberpunk aurora ' +
    'northern-lights fireworks nighttime',
}

/** Moods, which set the light if the prompt contains neither an hour nor the weather. */
export const MOODS: Readonly<Record<Hour, string>> = {
  dawn: 'pastel dreamy tender hope hopeful peaceful serene calm delicate',
  day: 'cheerful happy bright joy joyful fresh playful',
  dusk: 'golden warm romantic nostalgic cosy cozy love melancholic longing epic',
  night: 'dark spooky mysterious mystery scary horror lonely dream dramatic',
  grey: 'gloomy melancholy sad moody grief dystopian',
}

/** Weather that sets the light if the prompt contains no time of day. */
export const GREY = 'storm stormy rain rainy cloudy overcast fog foggy mist misty snowstorm blizzard ash'

export const SEASONS: Readonly<Record<Season, string>> = {
  spring: 'spring springtime april blossom blossoms cherry-blossom sakura',
  summer: 'summer summertime july tropical',
  autumn: 'autumn fall leaves autumnal october november harvest foliage',
  winter:
    'winter wintry snow snowy snowfall snowstorm blizzard ice icy frost frosty frozen arctic antarctica ' +
    'christmas',
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

/** Words that mean spring with trees in blossom. */
export const BLOSSOM = 'blossom blossoms cherry-blossom sakura'

/** Words for mountains that, together with a word for the sea, mean a shore. */
export const CLIFF = 'cliff cliffs'

/** Words for the sea that mean a shore. */
export const BEACH = 'beach beaches shore seashore coast coastline seaside'

export const LOCATION_WORDS: Readonly<Record<Exclude<Location, 'card'>, string>> = {
  mountains:
    'mountain mountains alps alpine peak peaks cliff cliffs ridge canyon himalaya himalayas volcano ' +
    'glacier fjord everest',
  hills:
    'hill hills meadow meadows field fields countryside farm grass grassland prairie savanna savannah ' +
    'vineyard garden gardens village pasture valley park steppe road highway campsite',
  underwater: 'underwater reef seabed coral deep-sea undersea aquarium',
  sea:
    'sea ocean lake river waves shore seashore coast coastline beach beaches seaside harbour harbor ' +
    'island puddle pond bay lagoon sailing water wave',
  city:
    'city neon cyberpunk street streets town urban skyline skyscraper skyscrapers tokyo paris london ' +
    'york shanghai berlin hong-kong manhattan rooftop rooftops alley downtown market traffic sidewalk ' +
    'crosswalk subway downtown monaco dubai chicago',
  forest:
    'forest forests waterfall waterfalls woods woodland jungle trees pines rainforest taiga grove bamboo',
  desert: 'desert deserts dune dunes sand sahara mars oasis arid badlands',
  space:
    'space planet planets galaxy galaxies cosmos cosmic orbit nebula universe interstellar moon-surface ' +
    'milky-way',
  sky: 'sky skies clouds cloud heaven flight airborne',
  table:
    'table tabletop countertop classroom hospital laboratory lab gym desk kitchen counter room interior ' +
    'cafe café restaurant window bedroom bar bakery plate still-life shelf office living-room library ' +
    'desk hotel-room kitchen-counter',
  studio:
    'studio product packshot icon logo minimal minimalist isolated pedestal podium backdrop commercial mockup',
  abstract:
    'abstract pattern texture geometric gradient shapes fluid psychedelic fractal generative wallpaper ' +
    'poster bauhaus kaleidoscope',
}

const TABLE = `
fox: 狐狸 狐 キツネ きつね 여우 ثعلب лиса лис fuchs renard zorro volpe raposa שועל लोमड़ी
wolf: 狼 オオカミ 늑대 ذئب волк loup lobo lupo זאב भेड़िया
cat: 猫 貓 ネコ ねこ 고양이 قطة кот кошка katze chat gato gatto חתול बिल्ली
dog: 狗 犬 イヌ 개가 강아지 كلب собака пёс hund chien perro cane cachorro כלב कुत्ता
horse: 马 馬 말이 حصان лошадь конь pferd cheval caballo cavallo cavalo סוס घोड़ा
bear: 熊 クマ 곰 دب медведь bär ours oso orso urso דוב भालू
panda: 熊猫 パンダ 판다 панда
tiger: 老虎 虎 トラ 호랑이 نمر тигр tigre बाघ
lion: 狮子 獅子 ライオン 사자 أسد лев löwe león leone leão אריה शेर
rabbit: 兔 兎 うさぎ 토끼 أرنب кролик заяц hase lapin conejo coniglio
elephant: 大象 象 코끼리 فيل слон elefant éléphant elefante פיל हाथी
camel: 骆驼 낙타 جمل верблюд kamel chameau camello
dragon: 龙 龍 竜 용이 تنين дракон drache
bird: 鸟 鳥 새가 طائر عصفور птица vogel oiseau pájaro uccello pássaro ציפור पक्षी चिड़िया
butterfly: 蝴蝶 나비 فراشة бабочка schmetterling papillon mariposa farfalla פרפר तितली
fish: 鱼 魚 물고기 سمكة рыба fisch poisson pez pesce peixe דג मछली
whale: 鲸 鯨 고래 حوت кит wal baleine ballena לוויתן
woman: 女人 女性 여자 امرأة женщина frau femme mujer donna mulher אישה औरत महिला
man: 男人 男性 남자 رجل мужчина mann homme hombre uomo homem איש גבר आदमी
girl: 女孩 少女 소녀 فتاة девочка девушка mädchen fille niña ragazza menina ילדה लड़की
boy: 男孩 少年 소년 ولد мальчик junge garçon niño ragazzo menino ילד लड़का
child: 孩子 子供 아이 طفل ребёнок kind enfant bambino criança बच्चा बच्चे
old-man: 老人 شيخ старик
astronaut: 宇航员 宇宙飛行士 우주비행사 رائد космонавт astronauta astronaute
robot: 机器人 ロボット 로봇 روبوت робот רובוט रोबोट
boat: 船 小船 배가 قارب سفينة лодка корабль schiff boot bateau barco barca סירה नाव
car: 汽车 車 자동차 سيارة машина автомобиль auto voiture coche macchina carro מכונית कार
train: 火车 電車 기차 قطار поезд zug tren treno trem רכבת ट्रेन रेलगाड़ी
airplane: 飞机 飛行機 비행기 طائرة самолёт flugzeug avion avión aereo avião
bicycle: 自行车 自転車 자전거 دراجة велосипед fahrrad vélo bicicleta
house: 房子 小屋 家 집이 بيت منزل дом haus maison casa בית घर
castle: 城堡 城 성이 قلعة замок schloss burg château castillo castello castelo טירה किला
temple: 寺 神社 사원 معبد храм tempel templo tempio मंदिर
mosque: مسجد мечеть mosquée mezquita
lighthouse: 灯塔 灯台 등대 منارة маяк leuchtturm phare faro farol מגדלור
lantern: 灯笼 提灯 фонарь laterne lanterne linterna
tree: 树 樹 木 나무 شجرة дерево baum arbre árbol albero árvore עץ पेड़
bouquet: 花 꽃 زهرة ورد цветы цветок blume blumen fleur fleurs flores fiori פרח פרחים फूल
coffee: 咖啡 コーヒー 커피 قهوة кофе kaffee café caffè קפה कॉफी
tea: 茶 お茶 شاي чай tee thé té תה चाय
noodles: 面条 拉面 ラーメン 라면
cake: 蛋糕 ケーキ 케이크 كعكة торт kuchen gâteau pastel torta bolo
mountain: 山 雪山 산 جبل جبال гора горы горах berg berge montagne montaña montagna montanha הר הרים पहाड़ पर्वत हिमालय
sea: 海 大海 바다 بحر море моря морем meer mer mar mare ים समुद्र
lake: 湖 호수 بحيرة озеро lac lago אגם झील
river: 河 江 川 강이 نهر река fluss rivière río fiume rio נהר नदी
forest: 森林 树林 森 林 숲 غابة лес лесу леса wald forêt bosque foresta floresta יער जंगल
city: 城市 都市 街 도시 مدينة город городе города stadt ville ciudad città cidade עיר शहर
desert: 沙漠 砂漠 사막 صحراء пустыня wüste désert desierto deserto מדבר रेगिस्तान
street: 街道 通り 거리 شارع улица улице straße calle strada rua רחוב सड़क
tokyo: 新宿 渋谷 东京 東京 도쿄 токио
neon: ネオン 霓虹 네온 неон
beach: 海滩 海边 砂浜 해변 شاطئ пляж strand plage playa spiaggia praia חוף
window: 窗 窓 창가 نافذة окно окне fenster fenêtre ventana finestra janela חלון खिड़की
storm: 暴风雨 嵐 폭풍 عاصفة шторм буря sturm tempête tormenta tempesta סוער סערה
space: 太空 宇宙 우주 فضاء космос weltraum espace espacio spazio
sky: 天空 空 하늘 سماء небо himmel ciel cielo céu שמיים आसमान
meadow: 草地 草原 田野 초원 луг wiese prairie prado
snow: 雪 下雪 눈이 ثلج الثلج снег снегу schnee neige nieve neve שלג बर्फ
rain: 雨 비가 مطر المطر дождь regen pluie lluvia pioggia chuva גשם बारिश
fog: 雾 霧 안개 ضباب туман nebel brouillard niebla nebbia ערפל कोहरा
cherry-blossom: 樱花 桜 벚꽃
spring: 春天 春 봄 ربيع весна весной frühling printemps primavera אביב वसंत
summer: 夏天 夏 여름 صيف лето летом sommer été verano estate verão קיץ गर्मी
autumn: 秋天 秋 紅葉 가을 خريف осень осенью herbst automne otoño autunno outono סתיו
winter: 冬天 冬 겨울 شتاء الشتاء зима зимой winter hiver invierno inverno חורף सर्दी
dawn: 清晨 日出 早晨 黎明 夜明け 朝 새벽 아침 فجر الفجر рассвет утро morgen aube amanecer alba זריחה सुबह
sunset: 黄昏 日落 傍晚 夕阳 夕暮れ 夕焼け 노을 غروب الغروب закат закате abend sonnenuntergang coucher atardecer tramonto שקיעה सूर्यास्त
night: 夜晚 夜 晚上 星空 밤 ليل الليل ночь ночью nacht nuit noche notte noite לילה रात
moon: 月亮 月 달이 قمر القمر луна mond lune luna lua ירח चाँद चांद
red: 红色 红 赤い 赤 빨간 أحمر красный красная rot roter rote rouge rojo roja rosso אדום लाल
blue: 蓝色 蓝 青い 青 파란 أزرق синий голубой blau blauer bleu azul blu כחול नीला
green: 绿色 绿 緑 초록 أخضر зелёный grün vert verde ירוק हरा
yellow: 黄色 노란 أصفر жёлтый gelb jaune amarillo giallo amarelo צהוב पीला
white: 白色 白 白い 하얀 أبيض белый weiss weiß blanc blanco bianco branco לבן सफेद
black: 黑色 黑 黒 검은 أسود чёрный schwarz noir negro nero preto שחור काला
`

const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u
// Not translated: words such as "auto", "rot" and "rio" may also occur in English prompts.
const AMBIGUOUS: ReadonlySet<string> = new Set(
  'chat auto rot rio mar mare lac pastel wal kind boot tee winter estate noir morgen cane rouge mer as kit'.split(
    ' ',
  ),
)

/** Arabic and Hebrew write "and", "in" and "the" as prefixes of the noun. */
const PREFIX = /^(?:[והבלמ]|[وبل]?ال|لل|[وب])(?=..)/u

const spaced = new Map<string, string>()
const unspaced: (readonly [string, string])[] = []
for (const line of TABLE.trim().split('\n')) {
  const [english = '', words = ''] = line.split(': ')
  for (const word of words.split(' ')) {
    if (UNSPACED.test(word)) unspaced.push([word, english])
    else if (!AMBIGUOUS.has(word)) spaced.set(word, english)
  }
}
unspaced.sort(([one], [other]) => other.length - one.length)

/**
 * Returns the prompt in lower case, with the known words translated to English. In scripts without spaces, a word is
 * found at any position.
 */
export function inEnglish(prompt: string): string {
  let text = prompt.toLowerCase()
  if (UNSPACED.test(text))
    for (const [word, english] of unspaced) text = text.replaceAll(word, ` ${english} `)
  return text.replace(
    /[\p{L}\p{M}]+/gu,
    (word) => spaced.get(word) ?? spaced.get(word.replace(PREFIX, '')) ?? word,
  )
}

/** Returns the known words of a passage in another script, in English and without duplicates. */
export function glossOf(passage: string): readonly string[] {
  return [...new Set(inEnglish(passage).match(/[a-z][a-z-]+/g))].map((word) => word.replaceAll('-', ' '))
}

/** Emoji that mean a time, a place or weather: 🌙🦊 means a fox at night, not a fox and a moon. */
const SIGNS: readonly (readonly [string, string])[] = [
  ['🌑🌒🌓🌔🌕🌖🌗🌘🌙🌚🌛🌜🌝', 'moon'],
  ['⭐🌟🌠🌌✨', 'stars'],
  ['☀🌞🌤', 'sunny'],
  ['🌈', 'rainbow'],
  ['🌅🌄', 'sunrise'],
  ['🌇🌆', 'city sunset'],
  ['🌃', 'city night'],
  ['🏙', 'city'],
  ['🎆🎇', 'fireworks'],
  ['🌊', 'sea'],
  ['🏖', 'beach'],
  ['🏔⛰🗻', 'mountains'],
  ['🏜', 'desert'],
  ['🏞', 'valley'],
  ['❄🌨', 'winter snowing'],
  ['🌧☔', 'rain'],
  ['⛈🌩⚡🌪', 'storm'],
  ['🌫', 'fog'],
  ['☁⛅🌥🌦', 'overcast'],
  ['🍂🍁', 'autumn'],
  ['🌸', 'cherry-blossom'],
]
const EMOJI_WORDS = new Map(SIGNS.flatMap(([signs, word]) => [...signs].map((sign) => [sign, word] as const)))
const KNOWN_EMOJI = new RegExp(`[${[...EMOJI_WORDS.keys()].join('')}]\\ufe0f?`, 'gu')

/** Replaces the emoji of `SIGNS` in the prompt by words. */
export function emojiAsWords(prompt: string): string {
  return prompt.replace(KNOWN_EMOJI, (sign) => ` ${EMOJI_WORDS.get(sign.replace('\ufe0f', '')) ?? ''} `)
}
