// Where the reference images stand when there are several: as prints in rows, as large as the room allows.

export interface Card {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

/** Shares of the frame that the prints may take: below the mark, above the caption. */
const ROOM = { left: 0.05, right: 0.95, top: 0.13, bottom: 0.76 } as const
const GAP = 0.03

/**
 * One rectangle per image, in the unit of `width` and `height`, keeping each image's own ratio (width / height).
 * Of all numbers of columns, the one that shows the most picture wins; the last row is centred.
 */
export function placeCards(width: number, height: number, ratios: readonly number[]): Card[] {
  let best: Card[] = []
  let most = 0
  for (let columns = 1; columns <= ratios.length; columns++) {
    const cards = placeIn(columns, width, height, ratios)
    const shown = cards.reduce((sum, card) => sum + card.width * card.height, 0)
    if (shown > most) {
      most = shown
      best = cards
    }
  }
  return best
}

function placeIn(columns: number, width: number, height: number, ratios: readonly number[]): Card[] {
  const rows = Math.ceil(ratios.length / columns)
  const gap = GAP * Math.min(width, height)
  const cellWidth = ((ROOM.right - ROOM.left) * width - gap * (columns - 1)) / columns
  const cellHeight = ((ROOM.bottom - ROOM.top) * height - gap * (rows - 1)) / rows
  return ratios.map((ratio, index) => {
    const row = Math.floor(index / columns)
    const inRow = Math.min(columns, ratios.length - row * columns)
    const indent = ((columns - inRow) * (cellWidth + gap)) / 2
    // A strip of 20:1 would be a line on the picture; it keeps its ratio only up to 4:1 and is cropped beyond.
    const shape = Math.min(4, Math.max(0.25, ratio))
    const cardWidth = Math.min(cellWidth, cellHeight * shape)
    const cardHeight = cardWidth / shape
    const left = ROOM.left * width + indent + (index % columns) * (cellWidth + gap)
    const top = ROOM.top * height + row * (cellHeight + gap)
    return {
      x: left + (cellWidth - cardWidth) / 2,
      y: top + (cellHeight - cardHeight) / 2,
      width: cardWidth,
      height: cardHeight,
    }
  })
}
