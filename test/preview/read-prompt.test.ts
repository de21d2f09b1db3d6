import { expect, test } from 'vitest'
import { hex } from '../../src/preview/colour.js'
import { readPrompt } from '../../src/preview/read-prompt.js'
import { settingFor } from '../../src/preview/scenery/scene.js'
import { expectLinear } from '../support/growth.js'

/** A reading with the fields that no word of the prompt has set. */
const readingOf = (prompt: string) => ({
  ...{ hour: undefined, place: undefined, season: undefined, weather: undefined },
  ...readPrompt(prompt),
})

const actorsOf = (prompt: string) =>
  readPrompt(prompt).actors.map(({ icon, count }) => (count === 1 ? icon : `${count} ${icon}`))

test.each([
  ['a red fox crosses a snowy forest at dusk', { hour: 'dusk', place: 'forest', season: 'winter' }],
  ['a rainy forest', { hour: 'grey', place: 'forest', weather: 'rain' }],
  ['NEON city, a yellow taxi', { hour: 'night', place: 'city' }],
  ['sad', { hour: 'grey' }],
  ['a cosy cabin under the stars', { hour: 'night' }],
  ['aerial view of green hills', { view: 'wide', place: 'hills' }],
  ['extreme close-up, portrait', { view: 'close' }],
  ['constructor toString __proto__ hasOwnProperty', { hour: undefined, place: undefined, actors: [] }],
  ['🌙🏔❄️', { hour: 'night', place: 'mountains', weather: 'snow', season: 'winter' }],
  ['northern lights over a lake', { hour: 'night', place: 'sea', skyEvent: 'aurora' }],
  ['🌈', { skyEvent: 'rainbow' }],
  ['fireworks over a harbour', { hour: 'night', place: 'sea', skyEvent: 'fireworks' }],
  ['bird’s-eye view', { view: 'wide' }],
  ['a dog on the beach', { place: 'beach' }],
  ['a fox under cherry blossoms', { season: 'spring', place: 'forest' }],
  ['a fox at golden hour', { hour: 'dusk', tints: [] }],
  ['', { hour: undefined, place: undefined, actors: [] }],
])('%s sets the hour, the place, the season and the weather', (prompt, expected) => {
  expect(readingOf(prompt)).toMatchObject(expected)
})

test.each([
  ['a fox and a rabbit under a tree', ['fox', 'rabbit', 'deciduous-tree']],
  ['a house, and before it a dog', ['dog', 'house']],
  ['two dogs playing football', ['2 dog', 'soccer-ball']],
  ['birds', ['3 bird']],
  ['a polar bear', ['polar-bear']],
  ['chocolate birthday cake', ['birthday-cake']],
  ['the camera follows a runner', ['person-running']],
  ['the camera flies slowly towards the lighthouse', ['lighthouse']],
  ['a sailboat climbs a wave, handheld camera', ['sailboat']],
  ['an old camera', ['camera']],
  ['🦊 and 🏃🏽‍♀️', ['fox', 'person-running']],
  ['nothing that it knows', []],
  ['two friends watch the sea', ['2 person']],
  ['a silver watch', ['watch']],
  ['crane shot, hero shot, key light', []],
  ['bird’s-eye view of a car', ['automobile']],
  ['a woman in a red coat', ['woman']],
  ['a red coat', ['coat']],
  ['a penguin family', ['3 penguin']],
  ['a camel caravan', ['3 camel']],
  ['a grey heron in a lake', ['heron']],
  ['a lighthouse keeper’s cottage', ['lighthouse', 'house']],
  ['a couple on the shore', ['2 person']],
  ['__proto__ constructor dog', ['dog']],
  ['under cherry blossoms', []],
  ['a Formula 1 car', ['racing-car']],
  ['🌙❄️🦊', ['fox']],
  ['a sandwich with eggs', ['sandwich', '3 egg']],
])('%s shows the figures %j', (prompt, expected) => {
  expect(actorsOf(prompt)).toEqual(expected)
})

test.each([
  ['treasure chest', 'treasure chest'],
  ['a treasure chest on a beach at sunset', 'treasure chest'],
  ['wooden barrel', 'wooden barrel'],
  ['spaceship engine', 'spaceship engine'],
  ['portrait of an old carpenter', 'old carpenter'],
  ['an old carpenter with a dog', 'old carpenter'],
  ['a carpenter carves a wooden horse', 'carpenter'],
  ['the lighthouse keeper climbs the stairs', 'lighthouse keeper'],
  ['old stone bridge over a river', 'old stone bridge'],
  ['At dawn, an old key maker', 'old key maker'],
  ['kitchen knife', 'kitchen knife'],
  ['sunset over a bridge', 'bridge'],
  ['her hair flows in the wind', 'hair'],
  ['宝箱', '宝箱'],
])('%s has the unknown subject "%s"', (prompt, subject) => {
  expect(readPrompt(prompt)).toMatchObject({ unknownSubject: subject, actors: [] })
  expect(settingFor(prompt).actors).toEqual([])
})

test.each([
  'golden reflections, a fox in the snow',
  'a bowl of soup',
  'a dog catches a ball',
  'a fox asleep in the snow',
  'two dogs play football',
  'city street at night, neon signs, wet asphalt',
  'The sailboat climbs a wave and drops behind it',
  'a red fox crosses a snowy forest at dusk',
  'isometric icon of a gear',
  'The character from the reference image, walking in the middle of a step',
])('%s has a known subject', (prompt) => {
  expect(readPrompt(prompt).unknownSubject).toBeUndefined()
})

test.each([
  ['no people', []],
  ['no people on a beach', []],
  ['a city without cars', []],
  ['a city street without cars or people at night', []],
  ['fox without a hat', ['fox']],
  ['a fox without a hat and a scarf, in the rain', ['fox']],
  ['a fox, not a dog', ['fox']],
  ['not a fox but a wolf', ['wolf']],
  ['not only a fox', ['fox']],
])('%s draws only %j, not what is excluded', (prompt, icons) => {
  expect(actorsOf(prompt)).toEqual(icons)
  expect(settingFor(prompt).actors.map(({ icon }) => icon)).toEqual(icons)
})

test('excluded words set no place, season, weather or colour, and the words after them do', () => {
  expect(readingOf('a red fox without snow')).toMatchObject({ season: undefined, weather: undefined })
  expect(readingOf('a fox, no rain, no green')).toMatchObject({
    hour: undefined,
    weather: undefined,
    tints: [],
  })
  expect(readPrompt('no people on a beach at sunset')).toMatchObject({ place: 'beach', hour: 'dusk' })
})

test('a colour before a noun belongs to the noun, another colour to the picture', () => {
  const ofSubject = readPrompt('a red paper boat on a green sea')
  expect(ofSubject.actors[0]?.tint?.hue).toBe(27)
  expect(ofSubject.tints.map(({ hue }) => hue)).toEqual([145])
  expect(readPrompt('red dunes, and then a fox').actors[0]?.tint).toBeUndefined()
})

test('the colour words reach the palette', () => {
  const channels = (prompt: string) => {
    const shade = hex(settingFor(prompt).palette.accent)
    return [1, 3, 5].map((at) => Number.parseInt(shade.slice(at, at + 2), 16))
  }
  const [red = 0, , redsBlue = 0] = channels('a red fox')
  const [bluesRed = 0, , blue = 0] = channels('a blue fox')
  expect(red).toBeGreaterThan(redsBlue + 80)
  expect(blue).toBeGreaterThan(bluesRed + 80)
})

test('a figure under blossoming trees is in a forest in blossom', () => {
  expect(settingFor('a monk under a cherry tree in blossom').place).toBe('forest')
})

test('a prompt of megabytes is read in linear time', async () => {
  await expectLinear(500_000, (foxes) => readPrompt('a fox, '.repeat(foxes)))
})
