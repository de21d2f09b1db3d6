// Draws a card with text: a subject without a figure, or a reference that cannot be shown.
import { mix } from '../colour.js'
import type { Palette } from '../palette.js'
import { box, type Print, path, rasterize } from '../scenery/stage.js'
import { even, type Size } from '../size.js'
import { drawableText, type Font, wrapText } from './font.js'

const TITLE_SIZES = [150, 132, 116, 102, 90, 78, 68, 60, 52, 44, 38]
const MAX_LINES = 4
const LINE_HEIGHT = 1.16
const FACT_SIZE = 38
const INSET = 70

/** Draws a card of at most this size in pixels. `facts` is a small line below the title, and may be empty. */
export async function drawCard(
  room: Size,
  font: Font,
  { paper, ink, accent }: Palette,
  title: string,
  facts: string,
): Promise<Print> {
  const unit = Math.min(room.width, room.height) / 600
  const inner = { width: room.width / unit - 2 * INSET, height: room.height / unit - 2 * INSET }
  const footHeight = facts === '' ? 0 : FACT_SIZE * 2
  const text = drawableText(title, font.has) || '…'
  const { lines, size } = fitLines(text, { ...inner, height: inner.height - footHeight }, font)
  const factSize = Math.min(FACT_SIZE, (FACT_SIZE * inner.width) / font.width(facts, FACT_SIZE))
  const widths = [...lines.map((line) => font.width(line, size)), font.width(facts, factSize)]
  const width = Math.min(inner.width, Math.max(inner.width * 0.45, ...widths)) + 2 * INSET
  const height = lines.length * size * LINE_HEIGHT + footHeight + 2 * INSET - size * 0.16
  const letters = lines.map((line, at) =>
    font.outline(line, INSET, INSET + size * (0.86 + at * LINE_HEIGHT), size),
  )
  const drawing =
    box([0, 0, width, height], mix(paper, accent, 0.16)) +
    box([0, 0, 20, height], accent) +
    path(letters.join(''), ink) +
    path(font.outline(facts, INSET, height - INSET * 0.78, factSize), ink, 0.75)
  const pixelSize = { width: even(width * unit), height: even(height * unit) }
  const picture = await rasterize(pixelSize, { width, height }, drawing)
  return { ...pixelSize, input: await picture.png().toBuffer() }
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
