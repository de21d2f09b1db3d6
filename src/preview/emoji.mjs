/**
 * The figures and their words, chosen at build time: Fluent Emoji by Microsoft (MIT) in the flat style, with the words of
 * emojilib (MIT), and the drawings of `figures/`. Skin tones, flags and symbols are left out. The build bundles the result
 * (`emojiAtBuild`), so both packages are development dependencies.
 *
 * Rejected: Game Icons (CC BY 3.0; one colour, many styles), Noto (25 MB; shaded, too much small detail), OpenMoji and
 * Twemoji (their licences, CC BY-SA and CC BY, would apply to every drawn picture).
 */
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const PACKAGE = '@iconify-json/fluent-emoji-flat'
const VARIANT = /(^|-)(light|medium|dark|facing-right|oclock|thirty)$/
const FACE = '-face|grinning|smiling|winking|-cat$|^cat-|heart-|-heart$|-mouth|anger|-no$|-ok$'
const LEFT_OUT = new RegExp(
  `${FACE}|chart-|^(baby-bottle|fly|cooking|eyes?|ear|nose|mouth|foot|leg|tongue|military-helmet|breast-feeding|middle-finger|sunrise|sunset|star|fog|foggy|snow-capped-mountain|desert|cityscape-at-dusk|night-with-stars|beach-with-umbrella|water-wave|glowing-star|snowflake)$`,
)
const KEPT = /^(dragon-face|red-heart)$/

/** How a figure stands in a picture: the default of its category, and the exceptions. */
const STANCES = {
  'People & Body': 'bust',
  'Animals & Nature': 'stand',
  'Travel & Places': 'landmark',
}
const EXCEPTIONS = {
  face: `woman man girl boy child baby person old-man old-woman older-person man-beard man-bald woman-bald person-bald
    man-red-hair woman-red-hair man-white-hair woman-white-hair man-curly-hair woman-curly-hair man-blonde-hair woman-blonde-hair`,
  head: `polar-bear panda koala raccoon hamster frog unicorn dragon-face robot alien`,
  stand: `fox wolf bear lion teddy-bear skier snowboarder horse-racing snowman automobile taxi bus racing-car sport-utility-vehicle
    pickup-truck delivery-truck fire-engine ambulance police-car tractor motorcycle bicycle motor-scooter locomotive
    high-speed-train tram auto-rickshaw articulated-lorry minibus trolleybus train bullet-train skateboard ghost person-in-lotus-position
    man-in-lotus-position woman-in-lotus-position`,
  fly: `eagle dove bird blackbird phoenix-bird bat butterfly honeybee airplane small-airplane helicopter rocket flying-saucer
    satellite parachute hot-air-balloon balloon kite red-paper-lantern feather ringed-planet globe-showing-europe-africa comet`,
  float: `sailboat paper-boat ship ferry passenger-ship speedboat motor-boat canoe person-rowing-boat man-rowing-boat
    woman-rowing-boat person-swimming man-swimming woman-swimming person-surfing man-surfing woman-surfing whale
    spouting-whale dolphin fish tropical-fish blowfish shark octopus squid jellyfish seal duck swan goose lotus heron flamingo`,
  landmark: `evergreen-tree deciduous-tree palm-tree cactus christmas-tree rock lighthouse windmill`,
  thing: `sunflower rose tulip hibiscus hyacinth maple-leaf four-leaf-clover shamrock coral bouquet potted-plant seedling
    herb cherry-blossom blossom fallen-leaf feather nest-with-eggs rosette spiral-shell sheaf-of-rice white-flower
    alarm-clock anchor bellhop-bell brick compass fire hourglass-done hourglass-not-done luggage mantelpiece-clock oil-drum
    roller-skate seat stopwatch thermometer umbrella closed-umbrella watch wheel wood world-map brain bone ear eye
    eyes foot footprints handshake heart-hands leg lungs mouth nose tongue tooth anatomical-heart nail-polish flexed-biceps
    folded-hands clapping-hands raised-fist raised-hand thumbs-up thumbs-down victory-hand waving-hand writing-hand`,
}

/** Heights in units, in a middle shot. */
const SIZES = { face: 420, head: 420, bust: 520, stand: 430, fly: 330, float: 400, landmark: 500, thing: 420 }
const TALL = /elephant|giraffe|mammoth|sauropod|t-rex|dragon|bus|locomotive|ferris-wheel|tokyo-tower/

/** The place of a figure if the prompt names none. */
const HOMES = {
  mountains:
    'penguin polar-bear skier snowboarder snowman goat eagle person-climbing man-climbing woman-climbing',
  forest:
    'tiger monkey gorilla orangutan parrot panda fox wolf bear owl deer hedgehog raccoon chipmunk beaver fire',
  desert: 'camel two-hump-camel cactus scorpion snake',
  space: `astronaut woman-astronaut man-astronaut alien rocket satellite flying-saucer ringed-planet comet
    globe-showing-europe-africa`,
  underwater: 'fish tropical-fish blowfish octopus squid jellyfish shark turtle',
  sea: 'lighthouse crab lobster anchor',
  city: `taxi bus tram automobile motor-scooter auto-rickshaw office-building helicopter hospital hotel school station
    factory bank department-store convenience-store tokyo-tower statue-of-liberty police-car ambulance
    fire-engine minibus trolleybus delivery-truck`,
}

/** Words with exactly the meaning of a figure's name. */
const SYNONYMS = `
  wolves:wolf mice:mouse geese:goose puppy:dog hound:dog kitten:cat kitty:cat bunny:rabbit hare:rabbit pony:horse stallion:horse mare:horse foal:horse stag:deer
  doe:deer fawn:deer elk:moose bull:ox sheep:ewe lamb:ewe cattle:cow calf:cow hippo:hippopotamus rhino:rhinoceros
  tortoise:turtle dinosaur:t-rex squirrel:chipmunk ladybug:lady-beetle ladybird:lady-beetle bee:honeybee bumblebee:honeybee
  hen:chicken chick:front-facing-baby-chick piglet:pig pigeon:dove crow:blackbird raven:blackbird crane:heron
  tyrannosaurus:t-rex grizzly:bear vixen:fox lioness:lion tigress:tiger android:robot

  lady:woman gentleman:man guy:man kid:child children:child toddler:child newborn:baby infant:baby people:person couple:person
  friend:person crowd:person grandmother:old-woman grandma:old-woman granny:old-woman grandfather:old-man grandpa:old-man
  elderly-man:old-man elderly-woman:old-woman elderly-person:older-person bearded-man:man-beard little-girl:girl little-boy:boy
  young-girl:girl young-boy:boy young-woman:woman young-man:man
  businesswoman:woman-office-worker businessman:man-office-worker chef:cook doctor:health-worker nurse:health-worker
  wizard:person-mage witch:woman-mage magician:person-mage king:person-with-crown queen:princess fairy:person-fairy
  elf:person-elf vampire:person-vampire superhero:person-superhero mermaid:woman-merpeople cosmonaut:astronaut
  policeman:man-police-officer policewoman:woman-police-officer programmer:technologist builder:construction-worker
  ballerina:woman-dancing dancer:woman-dancing runner:person-running jogger:person-running hiker:person-walking
  pedestrian:person-walking cyclist:person-biking swimmer:person-swimming surfer:person-surfing climber:person-climbing
  santa:santa-claus monk:person-in-lotus-position

  car:automobile sedan:automobile cab:taxi truck:delivery-truck lorry:delivery-truck suv:sport-utility-vehicle
  pickup:pickup-truck race-car:racing-car sports-car:racing-car formula-1-car:racing-car formula-one-car:racing-car motorbike:motorcycle bike:bicycle
  scooter:motor-scooter moped:motor-scooter train:locomotive streetcar:tram rickshaw:auto-rickshaw plane:airplane
  aeroplane:airplane aircraft:airplane jet:airplane biplane:small-airplane spaceship:rocket spacecraft:rocket ufo:flying-saucer
  hot-air-balloons:hot-air-balloon boat:sailboat yacht:sailboat sailing-boat:sailboat kayak:canoe cruise-ship:passenger-ship
  motorboat:speedboat origami-boat:paper-boat lantern:red-paper-lantern saturn:ringed-planet earth:globe-showing-europe-africa

  cottage:house home:house village:houses cabin:hut shack:hut palace:castle fortress:castle
  skyscraper:office-building torii:shinto-shrine pagoda:japanese-castle temple:classical-building mill:windmill
  fir:evergreen-tree spruce:evergreen-tree pine:evergreen-tree pine-tree:evergreen-tree tree:deciduous-tree oak:deciduous-tree
  maple:deciduous-tree palm:palm-tree boulder:rock campfire:fire bonfire:fire flame:fire

  coffee:hot-beverage cappuccino:hot-beverage espresso:hot-beverage latte:hot-beverage coffee-cup:hot-beverage
  coffee-mug:hot-beverage cup-of-coffee:hot-beverage tea:teacup-without-handle ramen:steaming-bowl noodles:steaming-bowl
  soup:steaming-bowl noodle-soup:steaming-bowl burger:hamburger cheeseburger:hamburger fries:french-fries pasta:spaghetti
  salad:green-salad apple:red-apple cake:shortcake cheesecake:shortcake muffin:cupcake donut:doughnut biscuit:cookie
  chili:hot-pepper aubergine:eggplant corn:ear-of-corn cheese:cheese-wedge wine:wine-glass beer:beer-mug
  glass-of-wine:wine-glass cocktail:cocktail-glass martini:cocktail-glass champagne:bottle-with-popping-cork
  steak:cut-of-meat ice-cream:soft-ice-cream chocolate:chocolate-bar honey:honey-pot

  shoe:running-shoe sneaker:running-shoe sneakers:running-shoe trainers:running-shoe boot:hiking-boot heels:high-heeled-shoe
  purse:handbag rucksack:backpack suitcase:luggage wristwatch:watch smartwatch:watch phone:mobile-phone
  smartphone:mobile-phone iphone:mobile-phone notebook-computer:laptop headphones:headphone armchair:chair
  sofa:couch-and-lamp couch:couch-and-lamp bulb:light-bulb lightbulb:light-bulb lamp:light-bulb book:closed-book
  diamond:gem-stone gem:gem-stone jewel:gem-stone tshirt:t-shirt shirt:t-shirt gift:wrapped-gift present:wrapped-gift
  football:soccer-ball heart:red-heart pumpkin:jack-o-lantern easel:artist-palette clock:mantelpiece-clock
  piano:musical-keyboard microphone:studio-microphone flowers:bouquet flower:hibiscus mug:hot-beverage box:package
  balls:soccer-ball ball:soccer-ball sword:dagger swords:crossed-swords`

const pluralOf = (word) =>
  /man$/.test(word)
    ? word.replace(/man$/, 'men')
    : /[^aeiou]y$/.test(word)
      ? word.replace(/y$/, 'ies')
      : `${word}${/(s|x|z|ch|sh|o)$/.test(word) ? 'es' : 's'}`

function chooseEmoji() {
  const { resolve } = createRequire(import.meta.url)
  const read = (file) => JSON.parse(readFileSync(resolve(file), 'utf8'))
  const { icons } = read(`${PACKAGE}/icons.json`)
  const { Flags, Symbols, ...categories } = read(`${PACKAGE}/metadata.json`).categories
  const keywords = read('emojilib')
  const listed = (table) =>
    Object.entries(table).flatMap(([key, names]) =>
      names
        .trim()
        .split(/\s+/)
        .map((name) => [name, key]),
    )
  const stances = new Map(listed(EXCEPTIONS))
  const homes = new Map(listed(HOMES))
  const isFullFigure = (name) => /^(person|man|woman)-[a-z]+ing(-|$)/.test(name)

  const figures = {}
  const add = (name, usual, body) => {
    const stance = stances.get(name) ?? usual
    const isPerson = /face|bust/.test(stance) || /^(woman|man|person)-/.test(name)
    const isTall = TALL.test(name) || (isPerson && stance === 'stand')
    const size = SIZES[stance] * (isTall ? 1.25 : 1)
    figures[name] = { stance, size, isPerson, body, ...(homes.has(name) && { home: homes.get(name) }) }
  }
  for (const [category, names] of Object.entries(categories))
    for (const name of names)
      if (icons[name] && !VARIANT.test(name) && (KEPT.test(name) || !LEFT_OUT.test(name)))
        add(name, isFullFigure(name) ? 'stand' : (STANCES[category] ?? 'thing'), icons[name].body)
  const folder = new URL('figures/', import.meta.url)
  for (const file of readdirSync(folder)) {
    const [, body] = /<\/title>\s*([\s\S]*?)\s*<\/svg>/.exec(readFileSync(new URL(file, folder), 'utf8'))
    add(file.replace('.svg', ''), 'thing', body)
  }

  const characters = {}
  const near = { bottle: 'lotion-bottle' }
  for (const [codes, name] of Object.entries(read(`${PACKAGE}/chars.json`))) {
    if (VARIANT.test(name)) continue
    const character = String.fromCodePoint(...codes.split('-').map((code) => Number.parseInt(code, 16)))
    characters[character] ??= name
  }
  // The emoji of a keyword is the first that has it, in the order of Unicode.
  for (const [emoji, words] of Object.entries(keywords)) {
    const name = characters[emoji.replaceAll('\ufe0f', '')]
    if (!(name in figures)) continue
    for (const word of words.flatMap((each) => [each, ...each.split('_')]))
      if (/^[a-z]{3,}$/.test(word)) near[word] ??= name
  }
  for (const [word, name] of Object.entries(near)) near[pluralOf(word)] ??= name
  // What women, men and people do: "walking", "walks" and "walk".
  const actions = {}
  for (const name of Object.keys(figures)) {
    const [, person, stem] = /^(woman|man|person)-([a-z]+)ing$/.exec(name) ?? []
    if (person === undefined) continue
    const verb = stem.replace(/([nm])\1$/, '$1')
    for (const form of [`${stem}ing`, verb, `${verb}s`, `${verb}e`, `${verb}es`])
      actions[`${person}-${form}`] = name
  }
  const words = {}
  const synonyms = SYNONYMS.trim().split(/\s+/)
  const named = [...Object.keys(figures), ...synonyms].map((pair) => pair.split(':'))
  for (const [word, name = word] of named) words[word] = { name, count: 1 }
  for (const [word, name = word] of named) words[pluralOf(word)] ??= { name, count: 3 }
  return {
    notice: `${PACKAGE} ${read(`${PACKAGE}/package.json`).version}: Fluent Emoji, Copyright (c) Microsoft Corporation, MIT License`,
    figures,
    words,
    near,
    actions,
    characters,
  }
}

export const EMOJI = chooseEmoji()

/** A plugin for rolldown that replaces this file by what it has chosen. */
export function emojiAtBuild() {
  const code = `export const EMOJI = ${JSON.stringify(EMOJI)}`
  return {
    name: 'emoji-at-build',
    load: { filter: { id: /preview[\\/]emoji\.mjs$/ }, handler: () => ({ code, moduleType: 'js' }) },
  }
}
