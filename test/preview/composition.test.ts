import { expect, test } from 'vitest'
import { loadFont } from '../../src/preview/lettering/font.js'
import { subjectCard } from '../../src/preview/picture.js'
import { composeScene, settingFor } from '../../src/preview/scenery/scene.js'
import type { Size } from '../../src/preview/size.js'
import { WORDS } from '../../src/preview/vocabulary.js'

const PLACES = Object.entries(WORDS.place).map(
  ([place, words]) => [place, words.trim().split(/\s+/)[0] ?? ''] as const,
)
const SIZES = [
  { width: 2333, height: 900 },
  { width: 1000, height: 1600 },
  { width: 1000, height: 900 },
]
const SHAPES = SIZES.flatMap((size) =>
  (['wide', 'middle', 'close'] as const).map((framing) => ({ size, framing })),
)
const CASTS = ['', 'a boat', 'three foxes and a house', 'a king', 'a bird', 'a tree and a cup', 'a blue car']
const WEATHERS = ['', 'in the rain at night', 'in snow', 'in a storm', 'in fog at dawn', 'in autumn at dusk']

const sceneOf = (
  prompt: string,
  size: Size = { width: 1778, height: 900 },
  framing: 'wide' | 'middle' | 'close' = 'wide',
  run?: string,
) => composeScene(settingFor(prompt, run), size, { framing, number: 1, hasReferences: false, margin: 0 })

test('the same prompt composes the same scene, and another prompt another scene', () => {
  expect(sceneOf('a fox')).toEqual(sceneOf('a fox'))
  expect(sceneOf('a fox')).not.toEqual(sceneOf('a fox.'))
})

test.each(PLACES)(
  '%s is drawn with valid numbers and unique ids in every shape and framing',
  (place, word) => {
    expect(settingFor(word).place).toBe(place)
    // Each shape once, with casts and weathers in turn, which meet other shapes in the next place.
    for (const [index, { size, framing }] of SHAPES.entries()) {
      const turn = index + PLACES.findIndex(([name]) => name === place)
      const prompt = `${word} with ${CASTS[turn % CASTS.length]} ${WEATHERS[turn % WEATHERS.length]}`
      const drawing = sceneOf(prompt, size, framing)
      expect(drawing).not.toMatch(/NaN|undefined|Infinity|\[object/)
      const names = [...drawing.matchAll(/ id="([^"]+)"/g)].map(([, name]) => name)
      expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([])
    }
  },
)

test('each run of one prompt is another scene, and the same run is the same scene', () => {
  const scene = (run?: string) => sceneOf('a fox', undefined, 'wide', run)
  expect(scene('run_1')).toEqual(scene('run_1'))
  expect(scene('run_1')).not.toEqual(scene('run_2'))
  expect(scene('run_1')).not.toEqual(scene())
})

test('a card shows an unknown subject inside its area: the same for one prompt, different for other words', async () => {
  const font = await loadFont('')
  const area = { left: 100, top: 80, width: 300, height: 200 }
  const draw = (prompt: string) => subjectCard(settingFor(prompt), area, font)
  const prompts = ['treasure chest', 'toaster', 'a bridge at night', 'rot'.repeat(80), '宝箱']
  const cards = await Promise.all(prompts.map(draw))
  expect(await Promise.all(prompts.map(draw))).toEqual(cards)
  const pictures = cards.flat().map(({ input }) => input.toString('base64'))
  expect(new Set(pictures).size).toBe(prompts.length)
  for (const { left, top, width, height } of cards.flat()) {
    expect(left).toBeGreaterThanOrEqual(area.left - 1)
    expect(top).toBeGreaterThanOrEqual(area.top - 1)
    expect(left + width).toBeLessThanOrEqual(area.left + area.width + 1)
    expect(top + height).toBeLessThanOrEqual(area.top + area.height + 1)
    expect([left, top, width, height].every((each) => each % 2 === 0)).toBe(true)
  }
  expect(await draw('a red fox')).toEqual([])
})
