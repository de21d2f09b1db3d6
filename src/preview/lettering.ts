// Draws the caption of a frame and cards, with Inter (OFL-1.1) from its file: servers often have no fonts. Letters of other
// scripts are drawn if a font of the machine has them.
import type { Sharp } from 'sharp'
import { EMOJI } from './emoji.mjs'
import { packagedFile, pixels } from './files.js'
import { mix, type Palette } from './palette.js'
import { replaceEmojis } from './read-prompt.js'
import { type Area, even, type Size } from './size.js'
import { svg } from './stage.js'

/** An opaque picture. Its size in pixels is even. */
export interface Print extends Size {
  readonly input: Buffer
}

/** A print at a place of the frame. */
export type Overlay = Print & Area

const FONT_FILE = packagedFile('inter.ttf', '@expo-google-fonts/inter/500Medium/Inter_500Medium.ttf')
/** A prompt may be megabytes long. */
const MAX_CHARACTERS = 600
const INVISIBLE = /[\p{Cc}\p{Cs}\p{Cn}\p{Co}\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]+/gu
/** Letters that Inter does not have. */
const OTHER_LETTERS = /[^\P{L}\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}]/gu
/** An unassigned character of each plane. Letters without a font are drawn as boxes of the same size. */
const UNASSIGNED = ['\u0378', '\u{5fffd}']

/** Returns one line of text, with the name of each emoji as in `[fox]`. */
export const lineOf = (prompt: string): string =>
  replaceEmojis(prompt.slice(0, MAX_CHARACTERS), (name) => ` [${name}] `)
    .replace(/\s+/gu, ' ')
    .replace(INVISIBLE, '')
    .trim()

export async function printOf(picture: Sharp): Promise<Print> {
  const { data, info } = await picture.png({ compressionLevel: 1 }).toBuffer({ resolveWithObject: true })
  return { input: data, width: info.width, height: info.height }
}

/** Draws text in a font size, wrapped at a width, or without one as large as fits into a room. All sizes are pixels. */
async function drawText(
  text: string,
  colour: string,
  room: { width?: number; height?: number },
  fontSize = 0,
): Promise<Print> {
  const escaped = text.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`)
  // Only a size in points grows with a room.
  const font = `Inter Medium${fontSize > 0 ? ` ${Math.round(fontSize)}px` : ''}`
  const markup = { text: `<span foreground="${colour}">${escaped}</span>`, font, fontfile: FONT_FILE }
  return printOf((await pixels())({ text: { ...markup, ...room, rgba: true, wrap: 'word-char' } }))
}

/** Whether Inter or a font of the machine has the letters. Tries the first and the last one of other scripts. */
async function isDrawable(text: string): Promise<boolean> {
  const letters = text.match(OTHER_LETTERS) ?? []
  const tried = [...UNASSIGNED, letters[0] ?? 'a', letters.at(-1) ?? 'a']
  const drawn = await Promise.all(tried.map((letter) => drawText(letter, '#000', {}, 200)))
  const [one, two, ...sizes] = drawn.map(({ width, height }) => `${width}x${height}`)
  return text !== '' && sizes.every((size) => size !== one && size !== two)
}

/** Draws prints on an SVG, which is the background. */
async function drawOn(
  { width, height }: Size,
  drawing: string,
  prints: readonly (Print & { left: number; top: number })[],
): Promise<Print> {
  const document = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">${drawing}</svg>`
  const placed = prints.map(({ input, left, top }) => ({
    input,
    left: Math.round(left),
    top: Math.round(top),
  }))
  return printOf((await pixels())(Buffer.from(document)).composite(placed).removeAlpha())
}

/** Draws the caption: the prompt and the mark of the renderer. `unit` is the number of pixels of a unit. */
export async function drawCaption(
  { ink, accent, paper }: Palette,
  prompt: string,
  frame: Size,
  unit: number,
): Promise<Print> {
  const [edge, padding] = [36 * unit, 21 * unit]
  const mark = await drawText('rushes preview', mix(paper, ink, 0.2), {}, 20 * unit)
  const line = lineOf(prompt) || '(no words)'
  const room = {
    width: Math.round(frame.width - 3 * edge - 22 * unit - mark.width),
    height: Math.round((frame.width < frame.height ? 5 : 3) * 41 * unit),
  }
  const texts = (await isDrawable(line))
    ? [await drawText(line, paper, { width: room.width }, 31 * unit)]
    : []
  // A long prompt is smaller.
  if ((texts[0]?.height ?? 0) > room.height) texts[0] = await drawText(line, paper, room)
  const height = even((texts[0] ?? mark).height + 2 * padding)
  const drawing = svg`<rect width="100%" height="100%" fill="${ink}"/><rect x="${edge}" y="${padding}" width="${texts.length * 7 * unit}"
    height="${height - 2 * padding}" rx="${3 * unit}" fill="${accent}"/>`
  return drawOn({ width: frame.width, height }, drawing, [
    ...texts.map((text) => ({ ...text, left: edge + 22 * unit, top: padding })),
    { ...mark, left: frame.width - edge - mark.width, top: padding },
  ])
}

/** Draws a card of at most this size in pixels: words, and a figure above them. */
export async function drawCard(room: Size, palette: Palette, title: string, name = ''): Promise<Print> {
  const unit = Math.min(room.width, room.height) / 600
  const inset = 56 * unit
  const line = lineOf(title)
  const isLegible = await isDrawable(line)
  const figure = EMOJI.figures[isLegible ? name : name || 'speech-balloon']?.body ?? ''
  const side = figure === '' ? 0 : 250 * unit
  const words = {
    width: Math.round(room.width - 2 * inset),
    height: Math.round((side > 0 ? 125 : 220) * unit),
  }
  const texts = isLegible ? [await drawText(line, palette.ink, words)] : []
  const [text = { width: 0, height: 0 }] = texts
  const width = even(Math.max(text.width, side, 300 * unit) + 2 * inset)
  const height = even(text.height + side * 1.1 + 2 * inset)
  const drawing = svg`<rect width="100%" height="100%" fill="${mix(palette.paper, palette.accent, 0.16)}"/>
    <rect width="${20 * unit}" height="100%" fill="${palette.accent}"/>
    <g transform="translate(${(width - side) / 2} ${inset}) scale(${side / 32})">${figure}</g>`
  const place = { left: (width - text.width) / 2, top: inset + side * 1.1 }
  return drawOn(
    { width, height },
    drawing,
    texts.map((each) => ({ ...each, ...place })),
  )
}
