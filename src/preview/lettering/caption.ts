// Draws the caption of a frame: a band below the stage, with the prompt and the mark of the renderer.
import type { Palette } from '../palette.js'
import { box, type Overlay, path, rasterize } from '../scenery/stage.js'
import { even, type Size } from '../size.js'
import { emojiAsNames } from '../vocabulary.js'
import { drawableText, type Font, wrapText } from './font.js'

/** Maximum length of the drawn text. More than fits into a frame; a prompt may be megabytes long. */
const MAX_CHARACTERS = 4000
const TEXT_SIZE = 31
const LINE = 41
const PADDING = 21
const EDGE = 36
const MARK = 'rushes preview'
const MARK_SIZE = 20

/** Draws the caption for a frame of this size. `unit` is the number of pixels of a unit. */
export async function drawCaption(
  font: Font,
  { ink, accent, paper }: Palette,
  prompt: string,
  frame: Size,
  unit: number,
): Promise<Overlay> {
  const width = frame.width / unit
  const markWidth = font.width(MARK, MARK_SIZE)
  const text = drawableText(emojiAsNames(prompt.slice(0, MAX_CHARACTERS)), font.has) || '(no words)'
  const maxLines = frame.width < frame.height ? 5 : 3
  const room = width - 3 * EDGE - 22 - markWidth
  const lines = wrapText(text, room, maxLines, (each) => font.width(each, TEXT_SIZE))
  const letters = lines.map((line, at) => font.outline(line, EDGE + 22, PADDING + 31 + at * LINE, TEXT_SIZE))
  const size = { width: frame.width, height: even((lines.length * LINE + 2 * PADDING) * unit) }
  const drawing =
    box([0, 0, width, frame.height], ink) +
    box([EDGE, PADDING + 6, 7, lines.length * LINE - 8], accent, 3) +
    path(letters.join(''), paper) +
    path(font.outline(MARK, width - EDGE - markWidth, PADDING + 31, MARK_SIZE), paper, 0.8)
  const picture = await rasterize(size, { width, height: size.height / unit }, drawing)
  return { ...size, left: 0, top: frame.height - size.height, input: await picture.png().toBuffer() }
}
