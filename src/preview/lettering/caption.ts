// Draws the text of a frame as SVG in stage units: the prompt on a dark gradient at the bottom, and the mark of the
// renderer at the top.
import { ICON_BOX, iconBody, iconOfEmoji } from '../cast/figure.js'
import { hex } from '../colour.js'
import type { Palette } from '../palette.js'
import type { Size } from '../render-request.js'
import { box, path, svg } from '../scenery/stage.js'
import { glossOf } from '../vocabulary.js'
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

/**
 * `label` is shown at the top right (the number of the shot), and may be empty. With `isOverPicture`, the background is
 * darker: the picture may be a preview with a caption, which must not be visible below this caption.
 */
export function drawCaption(
  stage: Size,
  lettering: Lettering,
  palette: Palette,
  words: { readonly prompt: string; readonly label: string; readonly isOverPicture: boolean },
): string {
  const { width, height } = stage
  const { text: promptText, icons } = standInForEmoji(words.prompt.slice(0, MAX_CHARACTERS))
  const font = withEmoji(lettering.text, icons.length)
  const prompt = drawableText(promptText, font.has, glossOf) || '(no words)'
  const maxLines = width < height ? 5 : 3
  const lines = wrapText(prompt, width - 2 * EDGE - 24, maxLines, (text) => font.width(text, TEXT_SIZE))
  const top = height - EDGE - lines.length * LINE
  const paper = hex(palette.paper)
  const ink = hex(palette.ink)

  const [middle, bottom] = words.isOverPicture ? [0.99, 1] : [0.5, 0.74]
  const gradient =
    `<linearGradient id="foot" x1="0" x2="0" y1="0" y2="1"><stop offset="0" stop-color="${ink}"` +
    ' stop-opacity="0"/>' +
    `<stop offset=".45" stop-color="${ink}" stop-opacity="${middle}"/><stop offset="1"` +
    ` stop-color="${ink}" stop-opacity="${bottom}"/>` +
    `</linearGradient>${box(-20, top - 80, width + 40, height - top + 100, 'url(#foot)')}`
  const bar = box(EDGE, top + 6, 7, lines.length * LINE - 8, hex(palette.accent), 3)
  const text = lines
    .map((line, index) => font.outline(line, EDGE + 22, top + 31 + index * LINE, TEXT_SIZE))
    .join('')
  const emoji = lines
    .map((line, index) => drawEmoji(line, font, icons, EDGE + 22, top + 31 + index * LINE, TEXT_SIZE))
    .join('')
  const label = words.label === '' ? '' : pill(lettering, palette, words.label, width - EDGE, 'right')
  return `${gradient}${bar}${path(text, paper)}${emoji}${pill(lettering, palette, MARK, EDGE, 'left')}${label}`
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
  const plate =
    svg`<rect x="${left}" y="32" width="${width}" height="36" rx="18" fill="${hex(palette.ink)}"` +
    ' fill-opacity=".58"/>'
  return plate + path(label.outline(text, left + 15, 57, size), hex(palette.paper), 0.94)
}

const PICTOGRAPH = '\\p{Extended_Pictographic}[\\ufe0f\\u{1f3fb}-\\u{1f3ff}]*'
const CLUSTER = new RegExp(`\\p{Regional_Indicator}{2}|${PICTOGRAPH}(?:\\u200d${PICTOGRAPH})*`, 'gu')
const PRIVATE = /[\ue000-\uf8ff]/g
const FIRST = 0xe000
const MOST = 64
/** Width of an emoji, and size of its icon, in units of the text size. */
const WIDTH = 1.24
const BOX = 1.14

interface EmojiText {
  readonly text: string
  /** Icons of the placeholder characters, by their distance from U+E000. */
  readonly icons: readonly string[]
}

/** Replaces each emoji that has an icon by a placeholder character. */
function standInForEmoji(prompt: string): EmojiText {
  const icons: string[] = []
  const text = prompt.replace(PRIVATE, '').replace(CLUSTER, (cluster) => {
    const icon = icons.length < MOST ? iconOfEmoji(cluster) : undefined
    return icon === undefined ? cluster : String.fromCharCode(FIRST + icons.push(icon) - 1)
  })
  return { text, icons }
}

/** Returns the font with the placeholder characters as wide, empty letters. */
function withEmoji(font: Font, count: number): Font {
  const isStandIn = (character: string) => {
    const at = character.charCodeAt(0) - FIRST
    return at >= 0 && at < count
  }
  return {
    has: (character) => isStandIn(character) || font.has(character),
    width: (text, size) => font.width(text, size) + (text.match(PRIVATE)?.length ?? 0) * WIDTH * size,
    outline(text, x, y, size) {
      let data = ''
      let at = x
      for (const part of text.split(/([\ue000-\uf8ff])/)) {
        if (!isStandIn(part)) data += font.outline(part, at, y, size)
        at += this.width(part, size)
      }
      return data
    },
  }
}

/** Draws the icons of a line whose baseline begins at x, y. */
function drawEmoji(
  line: string,
  font: Font,
  icons: readonly string[],
  x: number,
  y: number,
  size: number,
): string {
  return [...line.matchAll(PRIVATE)]
    .map(({ 0: character, index }) => {
      const body = iconBody(icons[character.charCodeAt(0) - FIRST] ?? '') ?? ''
      const left = x + font.width(line.slice(0, index), size) + ((WIDTH - BOX) / 2) * size
      const scale = (BOX * size) / ICON_BOX
      return svg`<g transform="translate(${left} ${y - size * 0.94}) scale(${scale.toFixed(3)})">${String(body)}</g>`
    })
    .join('')
}
