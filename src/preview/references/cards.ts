// The layout of several reference images: rows of prints of the same height, as large as the room allows.

export interface Card {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

/** Shares of the frame that the prints may take: below the mark, above the caption. */
const ROOM = { side: 0.05, top: 0.13, bottom: 0.76 } as const
const GAP = 0.03
/** How much higher than its share of the room a row may be. */
const MAX_ROW_SHARE = 1.5

/**
 * One rectangle per image, in the unit of `width` and `height`, keeping each image's own ratio (width / height) and their
 * order. Of all numbers of rows, which share the images evenly, the one wins in which the smallest is largest. `side` is
 * the share of the width that stays free on either side.
 */
export function placeCards(
  width: number,
  height: number,
  ratios: readonly number[],
  side: number = ROOM.side,
): Card[] {
  // Ratios beyond 4:1 are cropped: a strip of 20:1 would be a line.
  const shapes = ratios.map((ratio) => Math.min(4, Math.max(0.25, ratio)))
  const room = { width: (1 - 2 * side) * width, height: (ROOM.bottom - ROOM.top) * height }
  const gap = GAP * Math.min(width, height)
  const layouts = shapes.map((_, index) => rowsOf(shapes, index + 1, room, gap))
  const lowest = (rows: readonly Row[]) => Math.min(...rows.map((row) => row.height))
  const best = layouts.reduce((one, other) => (lowest(other) > lowest(one) ? other : one), layouts[0] ?? [])
  return layOut(best, width, ROOM.top * height + room.height / 2, gap)
}

interface Row {
  readonly shapes: readonly number[]
  readonly height: number
}

function rowsOf(
  shapes: readonly number[],
  count: number,
  room: { readonly width: number; readonly height: number },
  gap: number,
): readonly Row[] {
  const ends = Array.from({ length: count + 1 }, (_, row) => Math.round((row * shapes.length) / count))
  const free = room.height - gap * (count - 1)
  const rows = ends.slice(1).map((end, row) => {
    const own = shapes.slice(ends[row], end)
    const widest = (room.width - gap * (own.length - 1)) / sumOf(own)
    return { shapes: own, height: Math.min((free / count) * MAX_ROW_SHARE, widest) }
  })
  const shrink = Math.max(0, Math.min(1, free / sumOf(rows.map((row) => row.height))))
  return rows.map((row) => ({ ...row, height: row.height * shrink }))
}

function layOut(rows: readonly Row[], width: number, middle: number, gap: number): Card[] {
  let y = middle - (sumOf(rows.map(({ height }) => height)) + gap * (rows.length - 1)) / 2
  return rows.flatMap(({ shapes, height }) => {
    let x = (width - sumOf(shapes) * height - gap * (shapes.length - 1)) / 2
    const cards = shapes.map((shape) => {
      const card = { x, y, width: shape * height, height }
      x += card.width + gap
      return card
    })
    y += height + gap
    return cards
  })
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0)
