// Where the reference images stand when there are several: as prints in rows, those of a row equally high, as large as
// the room allows.

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
const TALLEST = 1.5

/**
 * One rectangle per image, in the unit of `width` and `height`, keeping each image's own ratio (width / height) and their
 * order. Of all ways to break them into rows (8,192 for fourteen) the one wins in which they are largest, the small ones
 * counting for more. `side` is the share of the width that stays free on either side.
 */
export function placeCards(
  width: number,
  height: number,
  ratios: readonly number[],
  side: number = ROOM.side,
): Card[] {
  // A strip of 20:1 would be a line on the picture; it keeps its ratio only up to 4:1 and is cropped beyond.
  const shapes = ratios.map((ratio) => Math.min(4, Math.max(0.25, ratio)))
  const room = { width: (1 - 2 * side) * width, height: (ROOM.bottom - ROOM.top) * height }
  const gap = GAP * Math.min(width, height)
  let best: readonly Row[] = []
  let most = -1
  // Each bit says whether a row ends after the image of its place.
  for (let breaks = 0; breaks < 2 ** Math.max(0, shapes.length - 1); breaks++) {
    const rows = rowsOf(shapes, breaks, room, gap)
    const shown = rows.reduce((sum, { shapes, height }) => sum + height * sumOf(shapes.map(Math.sqrt)), 0)
    if (shown > most) {
      most = shown
      best = rows
    }
  }
  return layOut(best, width, ROOM.top * height + room.height / 2, gap)
}

interface Row {
  readonly shapes: readonly number[]
  readonly height: number
}

function rowsOf(
  shapes: readonly number[],
  breaks: number,
  room: { readonly width: number; readonly height: number },
  gap: number,
): readonly Row[] {
  const rows: number[][] = [[]]
  for (const [index, shape] of shapes.entries()) {
    rows.at(-1)?.push(shape)
    if ((breaks >> index) & 1) rows.push([])
  }
  const free = room.height - gap * (rows.length - 1)
  const tallest = (free / rows.length) * TALLEST
  const heights = rows.map((row) =>
    Math.min(tallest, (room.width - gap * (row.length - 1)) / Math.max(0.01, sumOf(row))),
  )
  const shrink = Math.max(0, Math.min(1, free / sumOf(heights)))
  return rows.map((row, index) => ({ shapes: row, height: (heights[index] ?? 0) * shrink }))
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
