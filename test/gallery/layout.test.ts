/** Rows of pictures, as the page arranges them. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

interface Box {
  readonly row: number
  readonly top: number
  readonly left: number
  readonly width: number
  readonly height: number
  readonly caption?: number
  readonly section?: number
}
type Units = readonly (readonly number[])[]
interface Layout {
  readonly boxes: readonly Box[]
  readonly height: number
}

const { justify, layOutSections, columnsFor, boxesBetween, neighbour, CAPTION_HEIGHT } = (await import(
  '../../src/gallery/layout.js' as string
)) as {
  justify(units: Units, width: number): Layout
  layOutSections(
    sections: readonly Units[],
    width: number,
    options: { headingHeight: number },
  ): Layout & { readonly sections: readonly { top: number; height: number; first: number; end: number }[] }
  columnsFor(ratios: readonly number[], width: number, height: number): number
  boxesBetween(boxes: readonly Box[], from: number, to: number): readonly [number, number]
  neighbour(boxes: readonly Box[], at: number, key: string): number
  CAPTION_HEIGHT: number
}

const ratio = fc.double({ min: 0.4, max: 3.2, noNaN: true })
const ratios = fc.array(ratio, { maxLength: 60 })
const manyUnits = fc.array(fc.array(ratio, { minLength: 1, maxLength: 9 }), { maxLength: 30 })
const widths = fc.integer({ min: 280, max: 2_600 })
/** Units of one picture each. */
const single = (list: readonly number[]): Units => list.map((each) => [each])

/** Asserts that each box is within the width, nearly in its ratio, and after the box before it. */
function expectPlaced({ boxes, height }: Layout, list: readonly number[], width: number): void {
  expect(boxes.length).toBe(list.length)
  boxes.forEach((box, at) => {
    const before = boxes[at - 1]
    expect(box.left + box.width).toBeLessThanOrEqual(width)
    expect(box.top + box.height).toBeLessThanOrEqual(height)
    if (before?.row === box.row) expect(box.left).toBeGreaterThanOrEqual(before.left + before.width)
    else if (before !== undefined) expect(box.top).toBeGreaterThan(before.top + before.height)
    expect(Math.abs(box.width - (list[at] ?? 0) * box.height)).toBeLessThan(24)
  })
}

describe('rows', () => {
  it('have a box for each picture, in order, with room for its text', () => {
    fc.assert(
      fc.property(ratios, widths, (list, width) => {
        const layout = justify(single(list), width)
        expectPlaced(layout, list, width)
        layout.boxes.forEach((box, at) => {
          const before = layout.boxes[at - 1]
          expect(box.caption).toBe(box.width)
          expect(box.top + box.height + CAPTION_HEIGHT).toBeLessThanOrEqual(layout.height)
          if (before !== undefined && before.row !== box.row)
            expect(box.top).toBeGreaterThan(before.top + before.height + CAPTION_HEIGHT)
        })
      }),
    )
  })

  it('keep the variants of a unit together, at one height, with one text', () => {
    fc.assert(
      fc.property(manyUnits, widths, (units, width) => {
        const layout = justify(units, width)
        expectPlaced(layout, units.flat(), width)
        let first = 0
        for (const unit of units) {
          const boxes = layout.boxes.slice(first, first + unit.length)
          first += unit.length
          expect(new Set(boxes.map((box) => box.height)).size).toBe(1)
          expect(boxes.filter((box) => box.caption !== undefined)).toHaveLength(1)
        }
      }),
    )
  })

  it.each([[375], [1_400]])(
    'show any number of variants at a size that can be seen, %i pixels wide',
    (width) => {
      for (const count of [2, 11, 50, 150, 500, 2_000]) {
        const { boxes } = justify([Array.from({ length: count }, () => 1)], width)
        expect(boxes).toHaveLength(count)
        for (const box of boxes) expect(Math.min(box.width, box.height)).toBeGreaterThan(75)
        const inFirstRow = boxes.filter(({ row }) => row === 0).length
        expect(inFirstRow).toBeGreaterThan(1)
        expect(inFirstRow).toBeLessThan(12)
      }
    },
  )

  it('are as wide as the page, except the last', () => {
    const { boxes } = justify(
      single(Array.from({ length: 40 }, (_, at) => [1, 16 / 9, 9 / 16][at % 3] ?? 1)),
      1_200,
    )
    const last = boxes.at(-1)?.row ?? 0
    for (let row = 0; row < last; row++) {
      const end = boxes.filter((box) => box.row === row).at(-1)
      expect(end && end.left + end.width).toBe(1_200)
    }
  })

  it('fill a narrow screen to its edges, with at most two units in a row', () => {
    const { boxes } = justify(single([16 / 9, 1, 9 / 16]), 374)
    expect(boxes[0]).toMatchObject({ row: 0, left: 0, width: 374, height: 210 })
    expect(boxes.slice(1).map(({ row }) => row)).toEqual([1, 1])
    expect(boxes[2] && boxes[2].left + boxes[2].width).toBe(374)
    const narrow = justify(single(Array.from({ length: 9 }, () => 0.4)), 374).boxes
    expect(narrow.filter(({ row }) => row === 0)).toHaveLength(2)
  })

  it('are none for none', () => expect(justify([], 800)).toEqual({ boxes: [], height: 0 }))
})

describe('sections', () => {
  it('are below each other, each with its boxes after its heading', () => {
    fc.assert(
      fc.property(fc.array(manyUnits, { maxLength: 5 }), widths, (sections, width) => {
        const { boxes, sections: placed, height } = layOutSections(sections, width, { headingHeight: 56 })
        expect(boxes.length).toBe(sections.flat(2).length)
        placed.forEach(({ top, height: own, first, end }, at) => {
          const before = placed[at - 1]
          if (before !== undefined) {
            expect(top).toBeGreaterThan(before.top + before.height)
            expect(first).toBe(before.end)
          }
          expect(top + own).toBeLessThanOrEqual(height)
          for (const box of boxes.slice(first, end)) {
            expect(box.section).toBe(at)
            expect(box.top).toBeGreaterThanOrEqual(top + 56)
            expect(box.top + box.height).toBeLessThanOrEqual(top + own)
          }
        })
      }),
    )
  })

  it.each([
    [[1, 1], 1_000, 500, 2],
    [[1, 1], 400, 900, 1],
    [[16 / 9, 16 / 9, 16 / 9, 16 / 9], 1_000, 600, 2],
    [[0.5, 0.5, 0.5], 1_000, 600, 3],
  ])('compare %j in %i x %i with %i columns', (list, width, height, columns) =>
    expect(columnsFor(list, width, height)).toBe(columns),
  )
})

describe('the boxes between two heights', () => {
  it('are those that are seen', () => {
    fc.assert(
      fc.property(ratios, fc.integer({ min: -500, max: 9_000 }), fc.nat(2_000), (list, from, length) => {
        const { boxes } = justify(single(list), 900)
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
  const { boxes } = justify(single(Array.from({ length: 12 }, () => 1)), 1_200)
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
