// Draws a card with text: a subject without a figure, or a reference that cannot be shown.
import { type Colour, hex } from '../colour.js'
import { even, type Size } from '../render-request.js'
import { box, type Print, path, pixels, stageSvg } from '../scenery/stage.js'
import { drawableText, type Font, wrapText } from './font.js'

const TITLE_SIZES = [150, 132, 116, 102, 90, 78, 68, 60, 52, 44, 38]
const MAX_LINES = 4
const LINE_HEIGHT = 1.16
const FACT_SIZE = 38
const INSET = 70

export interface Card {
  readonly title: string
  /** A small line below the title. May be empty. */
  readonly facts: string
  readonly paper: Colour
  readonly ink: Colour
  /** Colour of the band at the left or right edge. */
  readonly accent: Colour
  readonly isBandLeft: boolean
}

/** Draws a card of at most this size in pixels. */
export async function drawCard(room: Size, font: Font, card: Card): Promise<Print> {
  const unit = Math.min(room.width, room.height) / 600
  const inner = { width: room.width / unit - 2 * INSET, height: room.height / unit - 2 * INSET }
  const footHeight = card.facts === '' ? 0 : FACT_SIZE * 2
  const title = drawableText(card.title, font.has) || '…'
  const { lines, size } = fitLines(title, { ...inner, height: inner.height - footHeight }, font)
  const factSize = Math.min(FACT_SIZE, (FACT_SIZE * inner.width) / font.width(card.facts, FACT_SIZE))
  const widths = [...lines.map((line) => font.width(line, size)), font.width(card.facts, factSize)]
  const width = Math.min(inner.width, Math.max(inner.width * 0.45, ...widths)) + 2 * INSET
  const height = lines.length * size * LINE_HEIGHT + footHeight + 2 * INSET - size * 0.16
  const letters = lines.map((line, at) =>
    font.outline(line, INSET, INSET + size * (0.86 + at * LINE_HEIGHT), size),
  )
  const drawing =
    box([0, 0, width, height], hex(card.paper)) +
    box([card.isBandLeft ? 0 : width - 20, 0, 20, height], hex(card.accent)) +
    path(letters.join(''), hex(card.ink)) +
    path(font.outline(card.facts, INSET, height - INSET * 0.78, factSize), hex(card.ink), 0.75)
  const pixelSize = { width: even(width * unit), height: even(height * unit) }
  const sharp = await pixels()
  const input = await sharp(stageSvg(pixelSize, { width, height }, drawing))
    .png()
    .toBuffer()
  return { input, ...pixelSize }
}

/** Finds the largest text size at which every word fits. A title that is too long ends in an ellipsis. */
function fitLines(text: string, room: Size, font: Font) {
  const wrapAt = (size: number) => {
    const most = Math.max(1, Math.min(MAX_LINES, Math.floor(room.height / (size * LINE_HEIGHT))))
    return wrapText(text, room.width, most, (each) => font.width(each, size))
  }
  const isWhole = (size: number) =>
    text.split(' ').every((word) => font.width(word, size) <= room.width) && wrapAt(size).join(' ') === text
  const size = TITLE_SIZES.find(isWhole) ?? FACT_SIZE
  return { lines: wrapAt(size), size }
}
