// Draws the caption of a frame: a band below the stage, with the prompt and the mark of the renderer.
import { hex } from '../colour.js'
import type { Palette } from '../palette.js'
import { box, path } from '../scenery/stage.js'
import { emojiAsNames } from '../vocabulary.js'
import { drawableText, type Font, wrapText } from './font.js'

/** Maximum length of the drawn text. More than fits into a frame; a prompt may be megabytes long. */
const MAX_CHARACTERS = 4000
const TEXT_SIZE = 31
const LINE = 41
const PADDING = 21
const EDGE = 36
/** Room for the mark, the same in every shot, so that the caption has the same height. */
const MARK_WIDTH = 230

export interface Caption {
  readonly drawing: string
  readonly height: number
}

/** `shot` is the number of the shot, such as `2 / 3`. */
export function drawCaption(
  font: Font,
  palette: Palette,
  prompt: string,
  width: number,
  maxLines: number,
  shot = '',
): Caption {
  const text = drawableText(emojiAsNames(prompt.slice(0, MAX_CHARACTERS)), font.has) || '(no words)'
  const room = width - 2 * EDGE - 22 - MARK_WIDTH
  const lines = wrapText(text, room, maxLines, (each) => font.width(each, TEXT_SIZE))
  const letters = lines.map((line, at) => font.outline(line, EDGE + 22, PADDING + 31 + at * LINE, TEXT_SIZE))
  const mark = shot === '' ? 'rushes preview' : `rushes preview  ${shot}`
  const height = lines.length * LINE + 2 * PADDING
  const drawing =
    box([0, 0, width, height + 10], hex(palette.ink)) +
    box([EDGE, PADDING + 6, 7, lines.length * LINE - 8], hex(palette.accent), 3) +
    path(letters.join(''), hex(palette.paper)) +
    path(font.outline(mark, width - EDGE - font.width(mark, 20), PADDING + 31, 20), hex(palette.paper), 0.8)
  return { drawing, height }
}
