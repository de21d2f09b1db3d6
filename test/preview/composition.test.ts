import sharp from 'sharp'
import { expect, test } from 'vitest'
import { loadLettering } from '../../src/preview/lettering/caption.js'
import { placeCards } from '../../src/preview/references.js'
import type { Size } from '../../src/preview/render-request.js'
import { composeScene, settingFor } from '../../src/preview/scenery/scene.js'
import { stageSvg } from '../../src/preview/scenery/stage.js'
import { drawSubjectCard } from '../../src/preview/scenery/subject-card.js'
import { GROUND_OF, WORDS } from '../../src/preview/vocabulary.js'

const PLACES = Object.entries(WORDS.place).map(
  ([place, words]) => [place, words.trim().split(/\s+/)[0] ?? ''] as const,
)
const SIZES = [
  { width: 1680, height: 720 },
  { width: 720, height: 1280 },
  { width: 1024, height: 1024 },
]
const SHAPES = SIZES.flatMap((size) =>
  (['wide', 'middle', 'close'] as const).map((framing) => ({ size, framing })),
)
const CASTS = ['', 'a boat', 'three foxes and a house', 'a king', 'a bird', 'a tree and a cup', 'a blue car']
const WEATHERS = ['', 'in the rain at night', 'in snow', 'in a storm', 'in fog at dawn', 'in autumn at dusk']

const NO_CUT = { x: 0, y: 0 }
const sceneOf = (
  prompt: string,
  size: Size = { width: 1280, height: 720 },
  framing: 'wide' | 'middle' | 'close' = 'wide',
  run?: string,
) => composeScene(settingFor(prompt, run), size, 1, { framing, hasReferences: false, cut: NO_CUT })

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
      const { width, height, drawing } = sceneOf(
        `${word} with ${CASTS[turn % CASTS.length]} ${WEATHERS[turn % WEATHERS.length]}`,
        size,
        framing,
      )
      expect(Math.min(width, height)).toBe(1000)
      expect(drawing).not.toMatch(/NaN|undefined|Infinity/)
      const names = [...drawing.matchAll(/ id="([^"]+)"/g)].map(([, name]) => name)
      expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([])
    }
  },
)

test('every place has a ground', () => {
  expect(Object.keys(GROUND_OF).filter((place) => place !== 'card')).toEqual(
    expect.arrayContaining(PLACES.map(([place]) => place)),
  )
})

test('each run of one prompt is another scene, and the same run is the same scene', () => {
  const scene = (run?: string) => sceneOf('a fox', undefined, 'wide', run)
  expect(scene('run_1')).toEqual(scene('run_1'))
  expect(scene('run_1')).not.toEqual(scene('run_2'))
  expect(scene('run_1')).not.toEqual(scene())
})

test.each([1, 2, 3, 5, 9, 14])('%i reference images are inside their area and do not overlap', (count) => {
  const ratios = Array.from({ length: count }, (_, index) => [1, 16 / 9, 2 / 3, 50, 0.01][index % 5] ?? 1)
  for (const [width, height] of [
    [1568, 672],
    [774, 1376],
    [1024, 1024],
  ] as const) {
    const area = { x: width * 0.5, y: height * 0.13, width: width * 0.46, height: height * 0.6 }
    const cards = placeCards(area, ratios)
    expect(cards).toHaveLength(count)
    for (const [index, card] of cards.entries()) {
      expect(card.x).toBeGreaterThanOrEqual(area.x - 1)
      expect(card.x + card.width).toBeLessThanOrEqual(area.x + area.width + 1)
      expect(card.y + card.height).toBeLessThanOrEqual(area.y + area.height + 1)
      expect(card.width * card.height).toBeGreaterThan(700)
      for (const other of cards.slice(index + 1)) {
        const apart =
          card.x + card.width <= other.x || other.x + other.width <= card.x || card.y + card.height <= other.y
        expect(apart).toBe(true)
      }
    }
  }
})

test('a card shows an unknown subject inside its frame: the same for one prompt, different for other words', async () => {
  const font = (await loadLettering()).text
  const areaOf = (size: Size) => {
    const { width, height } = sceneOf('x', size)
    return { x: width * 0.15, y: height * 0.14, width: width * 0.7, height: height * 0.54 }
  }
  const draw = (prompt: string, size: Size) => drawSubjectCard(areaOf(size), font, settingFor(prompt))
  const prompts = [
    'treasure chest',
    'wooden barrel',
    'toaster',
    'a bridge at night',
    'rot'.repeat(80),
    '宝箱',
  ]
  for (const size of SIZES) {
    const cards = prompts.map((prompt) => draw(prompt, size))
    expect(new Set(cards).size).toBe(prompts.length)
    expect(prompts.map((prompt) => draw(prompt, size))).toEqual(cards)
    for (const card of cards) {
      const [frame, letters] = ['<rect x="', '<path d="M'].map((start) => card.lastIndexOf(start))
      expect(frame).toBeGreaterThan(0)
      expect(letters).toBeGreaterThan(0)
      expect(card).not.toMatch(/NaN|undefined|Infinity/)
      // Trimmed to the frame and its corner marks.
      const small = { width: size.width / 4, height: size.height / 4 }
      const pixels = await sharp(stageSvg(small, sceneOf('x', size), card))
        .png()
        .toBuffer()
      const { info } = await sharp(pixels).trim().toBuffer({ resolveWithObject: true })
      expect(info.width).toBeLessThan(small.width * 0.86)
      expect(info.height).toBeLessThan(small.height * 0.7)
    }
  }
  expect(draw('a red fox', SIZES[0] as Size)).toBe('')
})
