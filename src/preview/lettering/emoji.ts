// Emoji in a caption. For line breaking, each is replaced by one character of the private use area; then its figure is
// drawn there.
import { ICON_BOX, iconBody, iconOfEmoji } from '../cast/icons.js'
import { short } from '../scenery/drawing.js'
import type { Font } from './font.js'

const CLUSTER =
  /\p{Regional_Indicator}{2}|\p{Extended_Pictographic}[\ufe0f\u{1f3fb}-\u{1f3ff}]*(?:\u200d\p{Extended_Pictographic}[\ufe0f\u{1f3fb}-\u{1f3ff}]*)*/gu
const PRIVATE = /[\ue000-\uf8ff]/g
const FIRST = 0xe000
const MOST = 64
/** In units of the size of the text. */
const WIDTH = 1.24
const BOX = 1.14

export interface EmojiText {
  readonly text: string
  /** The icon of each stand-in, by its distance from U+E000. */
  readonly icons: readonly string[]
}

/** Replaces the emoji that there is a picture for. */
export function standInForEmoji(prompt: string): EmojiText {
  const icons: string[] = []
  const text = prompt.replace(PRIVATE, '').replace(CLUSTER, (cluster) => {
    const icon = icons.length < MOST ? iconOfEmoji(cluster) : undefined
    return icon === undefined ? cluster : String.fromCharCode(FIRST + icons.push(icon) - 1)
  })
  return { text, icons }
}

/** The font with the stand-ins as wide, empty letters. */
export function withEmoji(font: Font, count: number): Font {
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

/** The pictures of a line whose baseline begins at x, y. */
export function drawEmoji(
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
      return `<g transform="translate(${short(left)} ${short(y - size * 0.94)}) scale(${scale.toFixed(3)})">${body}</g>`
    })
    .join('')
}
