// Draws a card with text: a subject without a figure, or a reference that cannot be shown.
import { mix } from '../colour.js'
import type { Palette } from '../palette.js'
import { box, type Print, path, rasterize } from '../scenery/stage.js'
import { even, type Size } from '../size.js'
import { drawableText, type Font, wrapText } from './font.js'

const SIZES = [150, 132, 116, 102, 90, 78, 68, 60, 52, 44, 38]
const MAX_LINES = 4
const LINE_HEIGHT = 1.16
const INSET = 70

/** Draws a card of at most this size in pixels. */
export async function drawCard(room: Size, font: Font, palette: Palette, title: string): Promise<Print> {
  const unit = Math.min(room.width, room.height) / 600
  const inner = { width: room.width / unit - 2 * INSET, height: room.height / unit - 2 * INSET }
  const { lines, size } = fitLines(drawableText(title, font.has) || '…', inner, font)
  const widest = Math.max(inner.width * 0.45, ...lines.map((line) => font.width(line, size)))
  const width = Math.min(inner.width, widest) + 2 * INSET
  const height = lines.length * size * LINE_HEIGHT + 2 * INSET - size * 0.16
  const letters = lines.map((line, at) =>
    font.outline(line, INSET, INSET + size * (0.86 + at * LINE_HEIGHT), size),
  )
  const drawing =
    box([0, 0, width, height], mix(palette.paper, palette.accent, 0.16)) +
    box([0, 0, 20, height], palette.accent) +
    path(letters.join(''), palette.ink)
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
  const size = SIZES.find(isWhole) ?? 38
  return { lines: wrapAt(size), size }
}
