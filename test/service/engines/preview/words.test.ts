import { expect, test } from 'vitest'
import { hex } from '../../../../src/service/engines/preview/colour.js'
import { paletteFor } from '../../../../src/service/engines/preview/palette.js'
import { randomFrom } from '../../../../src/service/engines/preview/random.js'
import { readPrompt } from '../../../../src/service/engines/preview/words.js'

test.each([
  ['a red fox crosses a snowy forest at dusk', { hour: 'dusk', place: 'forest', subject: 'animal' }],
  ['a snowy forest', { hour: 'grey', place: 'forest', subject: undefined }],
  ['NEON city, a yellow taxi', { hour: 'night', place: 'city', subject: 'vehicle' }],
  ['constructor toString __proto__', { hour: undefined, place: undefined, subject: undefined }],
  ['', { hour: undefined, place: undefined, subject: undefined }],
])('%s', (prompt, expected) => {
  expect(readPrompt(prompt)).toMatchObject(expected)
})

test('a colour just before the subject is its own, another is the picture’s', () => {
  const ofSubject = readPrompt('a red paper boat on a green sea')
  expect(ofSubject.subjectTint?.hue).toBe(27)
  expect(ofSubject.tints.map(({ hue }) => hue)).toEqual([145])
  expect(readPrompt('red dunes, and then a fox').subjectTint).toBeUndefined()
})

test('the colour words reach the palette', () => {
  const channels = (prompt: string) => {
    const shade = hex(paletteFor(readPrompt(prompt), randomFrom(prompt)).accent)
    return [1, 3, 5].map((at) => Number.parseInt(shade.slice(at, at + 2), 16))
  }
  const [red = 0, , redsBlue = 0] = channels('a red fox')
  const [bluesRed = 0, , blue = 0] = channels('a blue fox')
  expect(red).toBeGreaterThan(redsBlue + 80)
  expect(blue).toBeGreaterThan(bluesRed + 80)
})
