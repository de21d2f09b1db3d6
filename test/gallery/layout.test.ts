/** Rows of pictures, as the page arranges them. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

interface Box {
  readonly row: number
  readonly top: number
  readonly left: number
  readonly width: number
  readonly height: number
}

const { justify, boxesBetween, neighbour, CAPTION_HEIGHT } = (await import(
  '../../src/gallery/layout.js' as string
)) as {
  justify(ratios: readonly number[], width: number): { boxes: readonly Box[]; height: number }
  boxesBetween(boxes: readonly Box[], from: number, to: number): readonly [number, number]
  neighbour(boxes: readonly Box[], at: number, key: string): number
  CAPTION_HEIGHT: number
}

const ratios = fc.array(fc.double({ min: 0.4, max: 3.2, noNaN: true }), { maxLength: 60 })
const widths = fc.integer({ min: 280, max: 2_600 })

describe('rows', () => {
  it('have a box for each picture, in order, within the width and nearly in its ratio', () => {
    fc.assert(
      fc.property(ratios, widths, (list, width) => {
        const { boxes, height } = justify(list, width)
        expect(boxes.length).toBe(list.length)
        boxes.forEach((box, at) => {
          const before = boxes[at - 1]
          expect(box.left + box.width).toBeLessThanOrEqual(width)
          expect(box.top + box.height + CAPTION_HEIGHT).toBeLessThanOrEqual(height)
          if (before?.row === box.row) expect(box.left).toBeGreaterThanOrEqual(before.left + before.width)
          else if (before !== undefined)
            expect(box.top).toBeGreaterThan(before.top + before.height + CAPTION_HEIGHT)
          expect(Math.abs(box.width - (list[at] ?? 0) * box.height)).toBeLessThan(24)
        })
      }),
    )
  })

  it('are as wide as the page, except the last', () => {
    const { boxes } = justify(
      Array.from({ length: 40 }, (_, at) => [1, 16 / 9, 9 / 16][at % 3] ?? 1),
      1_200,
    )
    const last = boxes.at(-1)?.row ?? 0
    for (let row = 0; row < last; row++) {
      const end = boxes.filter((box) => box.row === row).at(-1)
      expect(end && end.left + end.width).toBe(1_200)
    }
  })

  it('fit a narrow screen', () => {
    const { boxes } = justify([16 / 9, 1, 9 / 16], 328)
    expect(boxes[0]).toMatchObject({ left: 0, width: 328, height: 185 })
  })

  it('are none for none', () => expect(justify([], 800)).toEqual({ boxes: [], height: 0 }))
})

describe('the boxes between two heights', () => {
  it('are those that are seen', () => {
    fc.assert(
      fc.property(ratios, fc.integer({ min: -500, max: 9_000 }), fc.nat(2_000), (list, from, length) => {
        const { boxes } = justify(list, 900)
        const [first, end] = boxesBetween(boxes, from, from + length)
        const isSeen = (box: Box) => box.top + box.height + CAPTION_HEIGHT >= from && box.top <= from + length
        // In a row all have the same top; a range may hold no more than what is seen.
        const seen = boxes.flatMap((box, at) => (isSeen(box) ? [at] : []))
        expect(boxes.slice(first, end).every(isSeen)).toBe(true)
        expect(seen.every((at) => at >= first && at < end)).toBe(true)
      }),
    )
  })
})

describe('arrow keys', () => {
  const { boxes } = justify(
    Array.from({ length: 12 }, () => 1),
    1_200,
  )
  const columns = boxes.filter(({ row }) => row === 0).length

  it.each([
    [0, 'ArrowLeft', 0],
    [0, 'ArrowRight', 1],
    [1, 'ArrowDown', 1 + columns],
    [1 + columns, 'ArrowUp', 1],
    [0, 'ArrowUp', 0],
    [11, 'ArrowDown', 11],
    [11, 'ArrowRight', 11],
    [5, 'Home', 0],
    [5, 'End', 11],
  ])('from %i, %s: %i', (at, key, to) => expect(neighbour(boxes, at, key)).toBe(to))
})
