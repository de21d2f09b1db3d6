import { expect, test } from 'vitest'
import { hex } from '../../src/preview/colour.js'
import { readPrompt } from '../../src/preview/read-prompt.js'
import { settingFor } from '../../src/preview/scenery/scene-setting.js'

const actorsOf = (prompt: string) =>
  readPrompt(prompt).actors.map(({ icon, count }) => (count === 1 ? icon : `${count} ${icon}`))

test.each([
  ['a red fox crosses a snowy forest at dusk', { hour: 'dusk', place: 'forest', season: 'winter' }],
  ['a rainy forest', { hour: 'grey', place: 'forest', weather: 'rain' }],
  ['NEON city, a yellow taxi', { hour: 'night', place: 'city' }],
  ['sad', { hour: 'grey' }],
  ['a cosy cabin under the stars', { hour: 'night' }],
  ['aerial view of green hills', { view: 'aerial', place: 'hills' }],
  ['extreme close-up, portrait', { view: 'close' }],
  ['constructor toString __proto__ hasOwnProperty', { hour: undefined, place: undefined, actors: [] }],
  ['🌙🏔❄️', { hour: 'night', place: 'mountains', weather: 'snow', season: 'winter' }],
  ['northern lights over a lake', { hour: 'night', place: 'sea', skyEvent: 'aurora' }],
  ['🌈', { skyEvent: 'rainbow' }],
  ['bird’s-eye view', { view: 'aerial' }],
  ['a dog on the beach', { place: 'sea', isBeach: true }],
  ['a fox under cherry blossoms', { season: 'spring', isInBlossom: true }],
  ['a fox at golden hour', { hour: 'dusk', tints: [] }],
  ['', { hour: undefined, place: undefined, actors: [] }],
])('%s', (prompt, expected) => {
  expect(readPrompt(prompt)).toMatchObject(expected)
})

test.each([
  ['a fox and a rabbit under a tree', ['fox', 'rabbit', 'deciduous-tree']],
  ['a house, and before it a dog', ['dog', 'house']],
  ['two dogs playing football', ['2 dog', 'soccer-ball']],
  ['birds', ['3 bird']],
  ['a polar bear', ['polar-bear']],
  ['chocolate birthday cake', ['birthday-cake']],
  ['the camera follows a runner', ['person-running']],
  ['an old camera', ['camera']],
  ['🦊 and 🏃🏽‍♀️', ['fox', 'person-running']],
  ['雪地里的狐狸', ['fox']],
  ['ثعلب في الثلج', ['fox']],
  ['Ein Fuchs vor einem Haus', ['fox', 'house']],
  ['nothing that it knows', []],
  ['two friends watch the sea', ['2 person']],
  ['a silver watch', ['watch']],
  ['crane shot, hero shot, key light', []],
  ['bird’s-eye view of a car', ['automobile']],
  ['a woman in a red coat', ['woman']],
  ['a red coat', ['coat']],
  ['a penguin family', ['3 penguin']],
  ['a couple on the shore', ['2 person']],
  ['__proto__ constructor dog', ['dog']],
  ['under cherry blossoms', []],
  ['樱花树下的狐狸', ['fox']],
  ['a Formula 1 car', ['racing-car']],
  ['🌙❄️🦊', ['fox']],
  ['a sandwich with eggs', ['sandwich', '3 egg']],
])('%s: %j', (prompt, expected) => {
  expect(actorsOf(prompt)).toEqual(expected)
})

test('words of other languages set place, season and hour too', () => {
  expect(readPrompt('冬天的森林，夜晚')).toMatchObject({ place: 'forest', season: 'winter', hour: 'night' })
  expect(readPrompt('море на закате')).toMatchObject({ place: 'sea', hour: 'dusk' })
  expect(readPrompt('מגדלור בים בלילה')).toMatchObject({ place: 'sea', hour: 'night' })
})

test('a colour just before a noun is its own, another is the picture’s', () => {
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

test('a prompt of megabytes is read in no time', () => {
  const started = performance.now()
  readPrompt('a fox, '.repeat(500_000))
  expect(performance.now() - started).toBeLessThan(500)
})
