import { expect, test } from 'vitest'
import { drawableText, loadFont, wrapText } from '../../src/preview/lettering/font.js'

const latin = (character: string) => /[\p{Script=Latin}\p{Nd}.,!?…'"\-[\]]/u.test(character)

test.each([
  ['plain words', 'plain words'],
  ['  many \n\t spaces  ', 'many spaces'],
  ['bell\u0007 and escape\u001b[31m', 'bell and escape[31m'],
  ['zero\u200bwidth and \u202eturned', 'zerowidth and turned'],
  ['half a pair \ud83e!', 'half a pair!'],
  ['a fox 🦊 runs 🏃🏽‍♀️', 'a fox runs'],
  ['in 東京 at night', 'in [Han] at night'],
  ['東京、夜', '[Han]'],
  ['東京 at night、夜', '[Han] at night [Han]'],
  ['ثعلب أحمر', '[Arabic]'],
  ['キツネ, きつね', '[Japanese]'],
  ['狐は走る', '[Japanese]'],
  ['बाघ!', '[Devanagari]!'],
  ['🦊🦊', ''],
  ['', ''],
])('%j becomes the caption %j', (prompt, expected) => {
  expect(drawableText(prompt, latin)).toBe(expected)
})

const perCharacter = (text: string) => [...text].length

test.each([
  ['one line', 20, 3, ['one line']],
  ['a fox in the snow at dusk', 10, 3, ['a fox in', 'the snow', 'at dusk']],
  ['a fox in the snow at dusk, again and again', 10, 2, ['a fox in', 'the snow…']],
  ['unbreakablewordthatislong', 10, 3, ['unbreakabl', 'ewordthati', 'slong']],
  ['', 10, 3, []],
])('%j with a width of %i is wrapped into at most %i lines', (text, room, most, expected) => {
  expect(wrapText(text, room, most, perCharacter)).toEqual(expected)
})

test('no line is wider than the frame, also for a prompt of megabytes', () => {
  const lines = wrapText('lorem ipsum dolor '.repeat(20_000), 60, 4, perCharacter)
  expect(lines).toHaveLength(4)
  expect(lines.at(-1)).toMatch(/…$/)
  for (const line of lines) expect(perCharacter(line)).toBeLessThanOrEqual(60)
})

test('the bundled font has Latin, Greek, Cyrillic and the ellipsis, and draws outlines', async () => {
  const font = await loadFont('é ł')
  for (const character of 'aZ9éßłőĐặñΩλЖщґ…—“”[]') expect(font.has(character), character).toBe(true)
  for (const character of '東あ한عא🦊') expect(font.has(character), character).toBe(false)
  expect(font.width('fox', 100)).toBeGreaterThan(font.width('fo', 100))
  expect(font.width('fox', 100)).toBeCloseTo(font.width('fox', 50) * 2)
  expect(font.outline('fox', 0, 0, 36)).toMatch(/^M[\d.]/)
  expect(font.outline('東', 0, 0, 36)).toBe('')
  // Where the frame's height is 1000 but for the last digit of a float.
  const line = font.outline('an aerial view', 62, 949.0000000000001, 31)
  expect(line).toMatch(/^[MLQCZ\d. -]+$/)
})
