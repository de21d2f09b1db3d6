// The lettering of a frame: the prompt on a dark gradient at the bottom, and at the top the mark of the renderer. One SVG
// drawing in stage units.
import { hex } from '../colour.js'
import { glossOf } from '../foreign-words.js'
import type { Palette } from '../palette.js'
import { box, path, short } from '../scenery/drawing.js'
import type { Size } from '../sizes.js'
import { drawableText } from './drawable.js'
import { drawEmoji, standInForEmoji, withEmoji } from './emoji.js'
import { type Font, loadFont } from './font.js'
import { wrapText } from './wrap.js'

export interface Lettering {
  readonly text: Font
  readonly label: Font
}

/** More than a frame has room for; a prompt may be megabytes long. */
const MAX_CHARACTERS = 4000
const MARK = 'rushes preview'
const TEXT_SIZE = 31
const LINE = 42
const EDGE = 40

/** The prompt may be in any of the font's scripts; the labels are our own English words. */
export async function loadLettering(): Promise<Lettering> {
  const [text, label] = await Promise.all([loadFont(500), loadFont(600, ['latin'])])
  return { text, label }
}

/**
 * `label` is shown at the top right (the number of the shot), and may be empty. A picture that fills the frame may be a
 * preview with a caption of its own, which must not be read through this one.
 */
export function drawCaption(
  stage: Size,
  lettering: Lettering,
  palette: Palette,
  words: { readonly prompt: string; readonly label: string; readonly isOverPicture: boolean },
): string {
  const { width, height } = stage
  const { text: written, icons } = standInForEmoji(words.prompt.slice(0, MAX_CHARACTERS))
  const font = withEmoji(lettering.text, icons.length)
  const prompt = drawableText(written, font.has, glossOf) || '(no words)'
  const most = width < height ? 5 : 3
  const lines = wrapText(prompt, width - 2 * EDGE - 24, most, (text) => font.width(text, TEXT_SIZE))
  const top = height - EDGE - lines.length * LINE
  const paper = hex(palette.paper)
  const ink = hex(palette.ink)

  const [middle, bottom] = words.isOverPicture ? [0.99, 1] : [0.5, 0.74]
  const foot =
    `<linearGradient id="foot" x1="0" x2="0" y1="0" y2="1"><stop offset="0" stop-color="${ink}" stop-opacity="0"/>` +
    `<stop offset=".45" stop-color="${ink}" stop-opacity="${middle}"/><stop offset="1" stop-color="${ink}" stop-opacity="${bottom}"/>` +
    `</linearGradient>${box(-20, top - 80, width + 40, height - top + 100, 'url(#foot)')}`
  const bar = box(EDGE, top + 6, 7, lines.length * LINE - 8, hex(palette.accent), 3)
  const text = lines
    .map((line, index) => font.outline(line, EDGE + 22, top + 31 + index * LINE, TEXT_SIZE))
    .join('')
  const emoji = lines
    .map((line, index) => drawEmoji(line, font, icons, EDGE + 22, top + 31 + index * LINE, TEXT_SIZE))
    .join('')
  const label = words.label === '' ? '' : pill(lettering, palette, words.label, width - EDGE, 'right')
  return `${foot}${bar}${path(text, paper)}${emoji}${pill(lettering, palette, MARK, EDGE, 'left')}${label}`
}

function pill(
  { label }: Lettering,
  palette: Palette,
  text: string,
  x: number,
  side: 'left' | 'right',
): string {
  const size = 20
  const inner = label.width(text, size)
  const width = inner + 30
  const left = side === 'left' ? x : x - width
  const plate = `<rect x="${short(left)}" y="32" width="${short(width)}" height="36" rx="18" fill="${hex(palette.ink)}" fill-opacity=".58"/>`
  return plate + path(label.outline(text, left + 15, 57, size), hex(palette.paper), 0.94)
}
