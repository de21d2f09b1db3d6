// Draws the text of a frame as SVG in stage units: the prompt on a dark gradient at the bottom, and the mark of the
// renderer at the top.
import { iconOfEmoji } from '../cast/figure.js'
import { hex } from '../colour.js'
import type { Palette } from '../palette.js'
import type { Size } from '../render-request.js'
import { box, fade, path } from '../scenery/stage.js'
import { drawableText, type Font, loadFont, wrapText } from './font.js'

export interface Lettering {
  readonly text: Font
  readonly label: Font
}

/** Maximum length of the drawn text. More than fits into a frame; a prompt may be megabytes long. */
const MAX_CHARACTERS = 4000
const MARK = 'rushes preview'
const TEXT_SIZE = 31
const LINE = 42
const EDGE = 40

/** Loads all scripts for the prompt, but only Latin for the labels, which are English. */
export async function loadLettering(): Promise<Lettering> {
  const [text, label] = await Promise.all([loadFont(500), loadFont(600, ['latin'])])
  return { text, label }
}

export interface Caption {
  readonly drawing: string
  /** The part of the frame without text, as shares of its height. */
  readonly clear: { readonly top: number; readonly bottom: number }
}

/** `label` is shown at the top right (the number of the shot), and may be empty. */
export function drawCaption(
  stage: Size,
  lettering: Lettering,
  palette: Palette,
  prompt: string,
  label = '',
): Caption {
  const { width, height } = stage
  const font = lettering.text
  const drawable = drawableText(namedEmoji(prompt.slice(0, MAX_CHARACTERS)), font.has) || '(no words)'
  const maxLines = width < height ? 5 : 3
  const lines = wrapText(drawable, width - 2 * EDGE - 24, maxLines, (each) => font.width(each, TEXT_SIZE))
  const top = height - EDGE - lines.length * LINE
  const ink = hex(palette.ink)
  const shade = fade('foot', top - 80, height, [0, ink, 0], [0.45, ink, 0.5], [1, ink, 0.74])
  const letters = lines.map((line, at) => font.outline(line, EDGE + 22, top + 31 + at * LINE, TEXT_SIZE))
  const drawing =
    shade +
    box([-20, top - 80, width + 40, height - top + 100], 'url(#foot)') +
    box([EDGE, top + 6, 7, lines.length * LINE - 8], hex(palette.accent), 3) +
    path(letters.join(''), hex(palette.paper)) +
    pill(lettering, palette, MARK, EDGE, 'left') +
    (label === '' ? '' : pill(lettering, palette, label, width - EDGE, 'right'))
  return { drawing, clear: { top: 80 / height, bottom: (top - 44) / height } }
}

function pill(
  { label }: Lettering,
  palette: Palette,
  text: string,
  x: number,
  side: 'left' | 'right',
): string {
  const width = label.width(text, 20) + 30
  const left = side === 'left' ? x : x - width
  const plate = box([left, 32, width, 36], hex(palette.ink), 18, 0.58)
  return plate + path(label.outline(text, left + 15, 57, 20), hex(palette.paper), 0.94)
}

const PICTOGRAPH = '\\p{Extended_Pictographic}[\\ufe0f\\u{1f3fb}-\\u{1f3ff}]*'
const EMOJI = new RegExp(`${PICTOGRAPH}(?:\\u200d${PICTOGRAPH})*`, 'gu')

/** Replaces each emoji by its name, as in `[fox]`. */
const namedEmoji = (prompt: string): string =>
  prompt.replace(EMOJI, (emoji) => ` [${iconOfEmoji(emoji)?.replaceAll('-', ' ') ?? 'emoji'}] `)
