import sharp from 'sharp'
import { expect, test } from 'vitest'
import { loadLettering } from '../../src/preview/lettering/caption.js'
import { placeCards } from '../../src/preview/references.js'
import type { Size } from '../../src/preview/render-request.js'
import { composeScene } from '../../src/preview/scenery/scene.js'
import { settingFor } from '../../src/preview/scenery/scene-setting.js'
import { stageSvg } from '../../src/preview/scenery/stage.js'
import { drawSubjectCard } from '../../src/preview/scenery/subject-card.js'
import { LOCATION_WORDS } from '../../src/preview/vocabulary.js'

const LANDS = Object.keys(LOCATION_WORDS)
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

const sceneOf = (
  prompt: string,
  size = { width: 1280, height: 720 },
  framing: 'wide' | 'middle' | 'close' = 'wide',
) => composeScene(settingFor(prompt), { size, framing, number: 1 })

test('the same prompt composes the same scene, another prompt another one', () => {
  expect(sceneOf('a fox')).toEqual(sceneOf('a fox'))
  expect(sceneOf('a fox')).not.toEqual(sceneOf('a fox.'))
})

test.each(LANDS)('%s: five planes of sound numbers at every shape, with whoever is in it', (place) => {
  const word = LOCATION_WORDS[place as keyof typeof LOCATION_WORDS].split(' ')[0]
  expect(settingFor(`${word}`).place).toBe(place)
  // Each shape once, with casts and weathers in turn, which meet other shapes in the next place.
  for (const [index, { size, framing }] of SHAPES.entries()) {
    const turn = index + LANDS.indexOf(place)
    const prompt = `${word} with ${CASTS[turn % CASTS.length]} ${WEATHERS[turn % WEATHERS.length]}`
    const scene = sceneOf(prompt, size, framing)
    expect(Math.min(scene.width, scene.height)).toBe(1000)
    expect(scene.planes.map(({ name }) => name)).toEqual(['sky', 'far', 'middle', 'ground', 'front'])
    for (const { drawing } of scene.planes) expect(drawing).not.toMatch(/NaN|undefined|Infinity/)
  }
})

test('a cliff by the sea shows the sea, and whoever stands there stands on the cliff', () => {
  for (const prompt of [
    'a cliff by the sea',
    'a castle on a cliff above the ocean',
    'a lighthouse on a cliff',
  ]) {
    expect(settingFor(prompt).place, prompt).toBe('sea')
    const [, , middle, ground] = sceneOf(prompt).planes
    expect(middle?.drawing, prompt).toContain('url(#water)')
    expect(ground?.drawing, prompt).toContain('url(#rock)')
  }
  for (const prompt of ['a cliff', 'the sea', 'a dog on the beach'])
    expect(sceneOf(prompt).planes[3]?.drawing, prompt).not.toContain('url(#rock)')
})

test('each run of one prompt is another scene, the same run the same one', () => {
  const scene = (runId?: string) =>
    composeScene(settingFor('a fox', runId), {
      size: { width: 1280, height: 720 },
      framing: 'wide',
      number: 1,
    })
  expect(scene('run_1')).toEqual(scene('run_1'))
  expect(scene('run_1')).not.toEqual(scene('run_2'))
  expect(scene('run_1')).not.toEqual(scene())
})

test('names within one plane are given once', () => {
  for (const place of LANDS) {
    for (const { drawing } of sceneOf(`${place} with three foxes, two boats and a house, night`).planes) {
      const names = [...drawing.matchAll(/ id="([^"]+)"/g)].map(([, name]) => name)
      expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
    }
  }
})

test.each([1, 2, 3, 5, 9, 14])(
  '%i reference images lie within the frame and apart from each other',
  (count) => {
    const ratios = Array.from({ length: count }, (_, index) => [1, 16 / 9, 2 / 3, 50, 0.01][index % 5] ?? 1)
    for (const [width, height] of [
      [1568, 672],
      [774, 1376],
      [1024, 1024],
    ] as const) {
      const cards = placeCards(width, height, ratios)
      expect(cards).toHaveLength(count)
      for (const [index, card] of cards.entries()) {
        expect(card.x).toBeGreaterThanOrEqual(0)
        expect(card.x + card.width).toBeLessThanOrEqual(width)
        expect(card.y + card.height).toBeLessThanOrEqual(height * 0.77)
        expect(card.width * card.height).toBeGreaterThan(1000)
        for (const other of cards.slice(index + 1)) {
          const apart =
            card.x + card.width <= other.x ||
            other.x + other.width <= card.x ||
            card.y + card.height <= other.y
          expect(apart).toBe(true)
        }
      }
    }
  },
)

test('a card shows an unknown subject inside its frame, the same for the same prompt, another for other words', async () => {
  const font = (await loadLettering()).text
  const draw = (prompt: string, size: Size) =>
    drawSubjectCard(sceneOf(prompt, size), font, settingFor(prompt))
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
