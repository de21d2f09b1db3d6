import { expect, test } from 'vitest'
import { paletteFor } from '../../../../src/service/engines/preview/palette.js'
import { randomFrom } from '../../../../src/service/engines/preview/random.js'
import { placeCards } from '../../../../src/service/engines/preview/references/cards.js'
import { composeScene } from '../../../../src/service/engines/preview/scenery/scene.js'
import { readPrompt } from '../../../../src/service/engines/preview/words.js'

const PLACES = ['mountain', 'hill', 'sea', 'city', 'forest', 'desert', 'space', 'studio'] as const
const SIZES = [
  { width: 1680, height: 720 },
  { width: 720, height: 1280 },
  { width: 1024, height: 1024 },
]

const sceneOf = (prompt: string, size = { width: 1280, height: 720 }, framing: 'wide' | 'close' = 'wide') => {
  const reading = readPrompt(prompt)
  const palette = paletteFor(reading, randomFrom(prompt))
  return composeScene({ seed: prompt, reading, palette }, { size, framing, number: 1 })
}

test('the same prompt composes the same scene, another prompt another one', () => {
  expect(sceneOf('a fox')).toEqual(sceneOf('a fox'))
  expect(sceneOf('a fox')).not.toEqual(sceneOf('a fox.'))
})

test.each(PLACES)('%s: four planes of sound numbers at every shape', (place) => {
  for (const size of SIZES) {
    for (const framing of ['wide', 'close'] as const) {
      const scene = sceneOf(`a ${place} and a boat`, size, framing)
      expect(Math.min(scene.width, scene.height)).toBe(1000)
      expect(scene.planes.map(({ name }) => name)).toEqual(['sky', 'far', 'middle', 'near'])
      for (const { drawing } of scene.planes) expect(drawing).not.toMatch(/NaN|undefined|Infinity/)
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
