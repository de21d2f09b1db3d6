// Draws what lies on a stage: the caption of a frame, cards and reference images. Text is in Inter (OFL-1.1) from its file: servers often have no fonts. Letters of other
// scripts are drawn if a font of the machine has them.
import { readFile } from 'node:fs/promises'
import type { Sharp } from 'sharp'
import { EMOJI } from './emoji.mjs'
import { openPicture, packagedFile, pixels } from './files.js'
import { replaceEmojis } from './read-prompt.js'
import { type Area, centred, type Size } from './size.js'
import { mix, type Palette, svg } from './stage.js'

/** An opaque picture. */
export interface Print extends Size {
  readonly input: Buffer
}

/** A print at a place of the frame. */
export type Overlay = Print & Area

const FONT_FILE = packagedFile('inter.ttf', '@expo-google-fonts/inter/500Medium/Inter_500Medium.ttf')
/** A prompt may be megabytes long. */
const MAX_CHARACTERS = 600
/** All but the joiners, which change the shape of letters. */
const INVISIBLE = /[^\P{C}\u200c\u200d]/gu
/** Letters that Inter does not have. */
const OTHER_LETTERS = /[^\P{L}\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}]/gu
/** Returns one line of text, with the name of each emoji as in `[fox]`. */
export const lineOf = (prompt: string): string =>
  replaceEmojis(prompt.slice(0, MAX_CHARACTERS), (name) => ` [${name}] `)
    .replace(/\s+/gu, ' ')
    .replace(INVISIBLE, '')
    .trim()

async function printOf(picture: Sharp): Promise<Print> {
  const { data, info } = await picture.png({ compressionLevel: 1 }).toBuffer({ resolveWithObject: true })
  return { input: data, width: info.width, height: info.height }
}

/** Returns text as markup of Pango. */
const span = (text: string, colour: string, size = 'medium'): string =>
  `<span foreground="${colour}" size="${size}">${text.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`)}</span>`

/** Draws markup as large as fits into a room, in which it is wrapped, or in a resolution. All sizes are pixels. */
async function drawText(text: string, room: Partial<Size> & { dpi?: number }): Promise<Print> {
  const markup = { text, font: 'Inter Medium', fontfile: FONT_FILE, rgba: true, wrap: 'word-char' } as const
  return printOf((await pixels())({ text: { ...markup, ...room } }))
}

/** Whether Inter or a font of the machine has the letters. Tries the first one of other scripts. */
async function isDrawable(text: string): Promise<boolean> {
  const [letter] = text.match(OTHER_LETTERS) ?? []
  if (letter === undefined) return text !== ''
  // Letters without a font are drawn as boxes, and so is an unassigned character. Other planes have wider ones.
  const unassigned = letter.length > 1 ? '\u{5fffd}' : '\u0378'
  const [drawn, box] = await Promise.all([letter, unassigned].map((each) => drawText(each, { dpi: 1200 })))
  return drawn?.width !== box?.width || drawn?.height !== box?.height
}

/** Draws the caption: the prompt and the mark of the renderer. `unit` is the number of pixels of a unit. */
export async function drawCaption(
  { ink, accent, paper }: Palette,
  prompt: string,
  frame: Size,
  unit: number,
): Promise<Print> {
  const line = lineOf(prompt)
  const mark = span('rushes preview', mix(accent, paper, 0.5), 'smaller')
  const text = (await isDrawable(line)) ? `${span(line, paper)}   ${mark}` : mark
  const [edge, padding] = [Math.round(36 * unit), Math.round(21 * unit)]
  const width = frame.width - 2 * edge
  // About 60 letters fit on a line. A long prompt is smaller.
  const lines = Math.min(
    frame.width < frame.height ? 5 : 3,
    Math.ceil(((line.length + 18) * 16.5 * unit) / width),
  )
  const print = await drawText(text, { width, height: Math.round(lines * 38 * unit) })
  const right = frame.width - print.width - edge
  return printOf(
    (await pixels())(print.input)
      .flatten({ background: ink })
      .extend({ top: padding, bottom: padding, left: edge, right, background: ink }),
  )
}

/** Draws a card of at most this size in pixels: words, and a figure above them. */
export async function drawCard(
  room: Size,
  { ink, paper, accent }: Palette,
  { title, name = '' }: { title: string; name?: string | undefined },
): Promise<Print> {
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
  const text = isLegible ? await drawText(span(line, ink), words) : undefined
  const width = Math.round(Math.max(text?.width ?? 0, side, 300 * unit) + 2 * inset)
  const height = Math.round((text?.height ?? 0) + side * 1.1 + 2 * inset)
  const background = svg`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">
    <rect width="100%" height="100%" fill="${mix(paper, accent, 0.16)}"/>
    <rect width="${20 * unit}" height="100%" fill="${accent}"/>
    <g transform="translate(${(width - side) / 2} ${inset}) scale(${side / 32})">${figure}</g></svg>`
  const card = (await pixels())(Buffer.from(background)).removeAlpha()
  if (text === undefined) return printOf(card)
  const [left, top] = [Math.round((width - text.width) / 2), Math.round(inset + side * 1.1)]
  return printOf(card.composite([{ ...text, left, top }]))
}

/**
 * Draws the reference files in rows within `area`, each in its own shape. The images are untrusted: a missing, corrupt or
 * too large file, or a file that is not an image, becomes a card and does not fail the run.
 */
export async function drawReferences(
  references: readonly (string | undefined)[],
  area: Area,
  palette: Palette,
): Promise<Overlay[]> {
  const count = references.length
  const columns = Math.min(count, Math.round(Math.sqrt((count * area.width) / area.height)))
  const [width, height] = [area.width / columns, area.height / Math.ceil(count / columns)]
  const gap = Math.min(width, height) * 0.1
  const room = { width: width - gap, height: height - gap }
  const prints: Overlay[] = []
  // One after the other: fourteen photographs at once would take almost a gigabyte.
  for (const [index, file = ''] of references.entries()) {
    const title = `reference ${index + 1} could not be shown`
    const print = await drawReference(file, room, palette.paper).catch(() =>
      drawCard(room, palette, { title }),
    )
    const left = area.left + (index % columns) * width
    prints.push(centred(print, { left, top: area.top + Math.floor(index / columns) * height, width, height }))
  }
  return prints
}

/** Decodes a picture to the size of its print. */
async function drawReference(file: string, room: Size, background: string) {
  // Bytes instead of the path: libvips has fewer decoders for them.
  const { picture } = await openPicture(await readFile(file))
  const border = Math.ceil(Math.min(room.width, room.height) * 0.02)
  const [across, down] = [room.width, room.height].map((side) => Math.floor(side) - 2 * border)
  return printOf(
    picture
      .resize(across, down, { fit: 'inside' })
      .flatten({ background: '#ffffff' })
      .toColourspace('srgb')
      .extend({ top: border, bottom: border, left: border, right: border, background }),
  )
}
