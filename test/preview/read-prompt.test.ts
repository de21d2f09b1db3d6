import { expect, test } from 'vitest'
import { readPrompt } from '../../src/preview/read-prompt.js'
import { settingFor } from '../../src/preview/scene.js'

test.each([
  ['a red fox crosses a snowy forest at dusk', { hour: 'dusk', place: 'forest', season: 'winter' }],
  ['aerial view of green hills', { view: 'wide', place: 'hills' }],
  ['constructor toString __proto__ hasOwnProperty', { hour: undefined, actors: [] }],
  ['🌙🏔❄️', { hour: 'night', place: 'mountains', weather: 'snow', season: 'winter' }],
  ['a fox under cherry blossoms', { season: 'spring', place: 'forest' }],
  ['no people on a beach at sunset', { place: 'beach', hour: 'dusk', actors: [] }],
])('%s sets the hour, the place, the season and the weather', (prompt, expected) => {
  expect(readPrompt(prompt)).toMatchObject(expected)
})

const actorsOf = (prompt: string) =>
  readPrompt(prompt).actors.map(({ name, count }) => (count === 1 ? name : `${count} ${name}`))

test.each([
  ['a fox and a rabbit under a tree', ['fox', 'rabbit']],
  ['two dogs playing football', ['2 dog', 'soccer-ball']],
  ['the camera flies slowly towards the lighthouse', ['lighthouse']],
  ['🦊 and 🏃🏽‍♀️', ['fox', 'woman-running']],
  ['a fox without a hat and a scarf, in the rain', ['fox']],
  ['not a fox but a wolf', ['wolf']],
])('%s shows the figures %j, and no card', (prompt, expected) => {
  expect(actorsOf(prompt)).toEqual(expected)
  expect(readPrompt(prompt).card).toBeUndefined()
})

test.each([
  ['a bowl of fruit, still life, van gogh style', 'fruit', 'grapes'],
  ['portrait of an old fisherman with a pipe', 'old fisherman', 'anchor'],
  ['a robot cat', 'robot cat', 'cat'],
  ['treasure chest on a beach at sunset', 'treasure chest', 'toolbox'],
  ['Ein roter Oldtimer im Herbst', 'Ein roter Oldtimer im Herbst', undefined],
  ['a city street without cars or people at night', 'city street', undefined],
  ['', '', undefined],
])('%s is not drawn: its card has the words "%s" and the figure %s', (prompt, title, name) => {
  expect(readPrompt(prompt)).toMatchObject({ card: { title, name }, actors: [] })
})

test('a prompt in which nothing is recognized has a card, and none beside references', () => {
  const prompt = 'The character from the reference image'
  expect(readPrompt(prompt).card?.title).toBe(prompt)
  const more = `${prompt}, standing and looking ahead, seen from behind. The same proportions and outline`
  expect(readPrompt(more, true).card).toBeUndefined()
  expect(readPrompt('a carpenter at work', true).card?.title).toBe('carpenter')
})

test('a figure in a place that is not drawn stands in a studio, and not in another place', () => {
  expect(settingFor('a robot in a greenhouse', 1).place).toBe('studio')
  expect(settingFor('a robot in a city', 1).place).toBe('city')
  expect(settingFor('a tropical fish', 1).place).toBe('underwater')
})

test('a colour before a noun belongs to the noun, another colour to the picture', () => {
  const { actors, tints } = readPrompt('a red paper boat on a green sea')
  expect(actors[0]?.tint?.h).toBeCloseTo(29, 0)
  expect(tints.map(({ h = 0 }) => Math.round(h))).toEqual([142])
  expect(readPrompt('red dunes, and then a fox').actors[0]?.tint).toBeUndefined()
})
