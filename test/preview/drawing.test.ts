/** The parts of a picture: figures, their colours, scenes and cards. */
import { oklch } from 'culori'
import { expect, test } from 'vitest'
import { EMOJI, emojiAtBuild } from '../../src/preview/emoji.mjs'
import { repaint } from '../../src/preview/figure.js'
import { drawCard, lineOf } from '../../src/preview/overlays.js'
import { composeScene, settingFor } from '../../src/preview/scene.js'
import { WORDS } from '../../src/preview/words.js'

test('every word of a figure names one, and a figure contains only shapes: no script, no link and no file', () => {
  const names = [EMOJI.near, EMOJI.actions].flatMap((table) => Object.values(table))
  for (const name of [...names, ...Object.values(EMOJI.words).map((each) => each.name)])
    expect(EMOJI.figures[name ?? ''], name).toBeDefined()
  for (const [name, figure] of Object.entries(EMOJI.figures))
    expect(figure?.body, name).not.toMatch(
      /<(script|image|foreignObject|style|a)\b|href="(?!#)|url\((?!#)| on\w+=/i,
    )
  const { load } = emojiAtBuild()
  const { code } = (load as { handler(): { code: string } }).handler()
  expect(JSON.parse(code.replace('export const EMOJI = ', ''))).toEqual(EMOJI)
})

test('a named colour changes the main colour of a figure, and not its eyes, or the skin of a person', () => {
  const painted = (name: string, colour: string) =>
    repaint(EMOJI.figures[name]?.body ?? '', oklch(colour), name.startsWith('woman'))
  expect(painted('fox', 'blue')).not.toContain('#ff822d')
  expect(painted('fox', 'blue')).toContain('#212121')
  expect(painted('fox', 'red')).toContain('#ff822d')
  expect(painted('running-shoe', 'white')).toMatch(/#f[e-f]f[e-f]f[e-f]/)
  expect(painted('woman-walking', 'red')).toContain('#ffc83d')
})

const CASTS = [
  '',
  'a boat',
  'three foxes and a house',
  'a king',
  'a bird',
  'a tree and a cup',
  'a blue car',
  'a girl',
]
const WEATHERS = ['', 'in the rain at night', 'in snow', 'in a storm', 'in fog at dawn', 'in autumn at dusk']

test.each(Object.entries(WORDS.place))(
  '%s is drawn with valid numbers and unique ids in every shape and framing',
  (place, words) => {
    const [word = ''] = words.split(/\s+/)
    expect(settingFor(word, 1).place).toBe(place)
    for (const [index, cast] of CASTS.entries()) {
      const setting = settingFor(`${word} with ${cast} ${WEATHERS[index % WEATHERS.length]}`, 1)
      const size = index % 2 ? { width: 2333, height: 900 } : { width: 1000, height: 1600 }
      const drawing = composeScene(setting, size, { number: 1, framing: index % 4 < 2 ? 'wide' : 'close' })
      expect(drawing).not.toMatch(/NaN|undefined|Infinity|\[object/)
      const names = [...drawing.matchAll(/ id="([^"]+)"/g)].map(([, name]) => name)
      expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([])
    }
  },
)

const { palette } = settingFor('a fox', 1)

test('a card shows its words within its room: the same for one title, different for other words', async () => {
  const room = { width: 300, height: 200 }
  const draw = (title: string) => drawCard(room, palette, { title, name: 'fox' })
  const titles = ['treasure chest', 'a bridge at night', 'rot'.repeat(80), 'a <b> & c', 'Сундук']
  const cards = await Promise.all(titles.map(draw))
  expect(await Promise.all(titles.map(draw))).toEqual(cards)
  expect(new Set(cards.map(({ input }) => input.toString('base64'))).size).toBe(titles.length)
  for (const { width, height } of cards) {
    expect(width).toBeLessThanOrEqual(room.width + 1)
    expect(height).toBeLessThanOrEqual(room.height + 1)
  }
})

test.each([
  ['  many \n\t spaces  ', 'many spaces'],
  ['bell\u0007 and escape\u001b[31m', 'bell and escape[31m'],
  ['zero\u200bwidth and \u202eturned', 'zerowidth and turned'],
  ['a fox 🦊 runs 🏃🏽‍♀️', 'a fox [fox] runs [woman running]'],
  ['東京、夜', '東京、夜'],
])('%j becomes the line %j', (prompt, expected) => expect(lineOf(prompt)).toBe(expected))
