// The commonest words of prompts in other languages, in ours: enough for a first picture to be about the right thing.
// What stands in scripts without spaces is found wherever it stands, longer words first.

const TABLE = `
fox: 狐狸 狐 キツネ きつね 여우 ثعلب лиса лис fuchs renard zorro volpe raposa
wolf: 狼 オオカミ 늑대 ذئب волк loup lobo lupo
cat: 猫 貓 ネコ ねこ 고양이 قطة кот кошка katze chat gato gatto
dog: 狗 犬 イヌ 개가 강아지 كلب собака пёс hund chien perro cane cachorro
horse: 马 馬 말이 حصان лошадь конь pferd cheval caballo cavallo cavalo
bear: 熊 クマ 곰 دب медведь bär ours oso orso urso
panda: 熊猫 パンダ 판다 панда
tiger: 老虎 虎 トラ 호랑이 نمر тигр tigre
lion: 狮子 獅子 ライオン 사자 أسد лев löwe león leone leão
rabbit: 兔 兎 うさぎ 토끼 أرنب кролик заяц hase lapin conejo coniglio
elephant: 大象 象 코끼리 فيل слон elefant éléphant elefante
camel: 骆驼 낙타 جمل верблюд kamel chameau camello
dragon: 龙 龍 竜 용이 تنين дракон drache
bird: 鸟 鳥 새가 طائر عصفور птица vogel oiseau pájaro uccello pássaro
butterfly: 蝴蝶 나비 فراشة бабочка schmetterling papillon mariposa farfalla
fish: 鱼 魚 물고기 سمكة рыба fisch poisson pez pesce peixe
whale: 鲸 鯨 고래 حوت кит wal baleine ballena
woman: 女人 女性 여자 امرأة женщина frau femme mujer donna mulher
man: 男人 男性 남자 رجل мужчина mann homme hombre uomo homem
girl: 女孩 少女 소녀 فتاة девочка девушка mädchen fille niña ragazza menina
boy: 男孩 少年 소년 ولد мальчик junge garçon niño ragazzo menino
child: 孩子 子供 아이 طفل ребёнок kind enfant bambino criança
old-man: 老人 شيخ старик
astronaut: 宇航员 宇宙飛行士 우주비행사 رائد космонавт astronauta astronaute
robot: 机器人 ロボット 로봇 روبوت робот
boat: 船 小船 배가 قارب سفينة лодка корабль schiff boot bateau barco barca
car: 汽车 車 자동차 سيارة машина автомобиль auto voiture coche macchina carro
train: 火车 電車 기차 قطار поезд zug tren treno trem
airplane: 飞机 飛行機 비행기 طائرة самолёт flugzeug avion avión aereo avião
bicycle: 自行车 自転車 자전거 دراجة велосипед fahrrad vélo bicicleta
house: 房子 小屋 家 집이 بيت منزل дом haus maison casa
castle: 城堡 城 성이 قلعة замок schloss burg château castillo castello castelo
temple: 寺 神社 사원 معبد храм tempel templo tempio
mosque: مسجد мечеть mosquée mezquita
lighthouse: 灯塔 灯台 등대 منارة маяк leuchtturm phare faro farol
lantern: 灯笼 提灯 фонарь laterne lanterne linterna
tree: 树 樹 木 나무 شجرة дерево baum arbre árbol albero árvore
bouquet: 花 꽃 زهرة ورد цветы цветок blume blumen fleur fleurs flores fiori
coffee: 咖啡 コーヒー 커피 قهوة кофе kaffee café caffè
tea: 茶 お茶 شاي чай tee thé té
noodles: 面条 拉面 ラーメン 라면
cake: 蛋糕 ケーキ 케이크 كعكة торт kuchen gâteau pastel torta bolo
mountain: 山 雪山 산 جبل جبال гора горы горах berg berge montagne montaña montagna montanha
sea: 海 大海 바다 بحر море meer mer mar mare
lake: 湖 호수 بحيرة озеро lac lago
river: 河 江 川 강이 نهر река fluss rivière río fiume rio
forest: 森林 树林 森 林 숲 غابة лес лесу wald forêt bosque foresta floresta
city: 城市 都市 街 도시 مدينة город городе stadt ville ciudad città cidade
desert: 沙漠 砂漠 사막 صحراء пустыня wüste désert desierto deserto
space: 太空 宇宙 우주 فضاء космос weltraum espace espacio spazio
sky: 天空 空 하늘 سماء небо himmel ciel cielo céu
meadow: 草地 草原 田野 초원 луг wiese prairie prado
snow: 雪 下雪 눈이 ثلج الثلج снег снегу schnee neige nieve neve
rain: 雨 비가 مطر المطر дождь regen pluie lluvia pioggia chuva
fog: 雾 霧 안개 ضباب туман nebel brouillard niebla nebbia
spring: 春天 春 樱花 桜 봄 ربيع весна frühling printemps primavera
summer: 夏天 夏 여름 صيف лето sommer été verano estate verão
autumn: 秋天 秋 紅葉 가을 خريف осень herbst automne otoño autunno outono
winter: 冬天 冬 겨울 شتاء зима winter hiver invierno inverno
dawn: 清晨 日出 早晨 黎明 夜明け 朝 새벽 아침 فجر الفجر рассвет утро morgen aube amanecer alba
sunset: 黄昏 日落 傍晚 夕阳 夕暮れ 夕焼け 노을 غروب الغروب закат закате abend sonnenuntergang coucher atardecer tramonto
night: 夜晚 夜 晚上 星空 밤 ليل الليل ночь ночью nacht nuit noche notte noite
moon: 月亮 月 달이 قمر القمر луна mond lune luna lua
red: 红色 红 赤い 赤 빨간 أحمر красный красная rot roter rote rouge rojo roja rosso
blue: 蓝色 蓝 青い 青 파란 أزرق синий голубой blau blauer bleu azul blu
green: 绿色 绿 緑 초록 أخضر зелёный grün vert verde
yellow: 黄色 노란 أصفر жёлтый gelb jaune amarillo giallo amarelo
white: 白色 白 白い 하얀 أبيض белый weiss weiß blanc blanco bianco branco
black: 黑色 黑 黒 검은 أسود чёрный schwarz noir negro nero preto
`

const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u
// "auto", "rot" and "rio" are also words of English prompts, or of no language in particular.
const AMBIGUOUS: ReadonlySet<string> = new Set(
  'chat auto rot rio mar mare lac pastel wal kind boot tee winter estate noir morgen cane rouge mer as kit'.split(
    ' ',
  ),
)

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

/** The prompt with the words that are known in ours; in lower case. */
export function inEnglish(prompt: string): string {
  let text = prompt.toLowerCase()
  if (UNSPACED.test(text))
    for (const [word, english] of unspaced) text = text.replaceAll(word, ` ${english} `)
  return text.replace(/[\p{L}\p{M}]+/gu, (word) => spaced.get(word) ?? word)
}
