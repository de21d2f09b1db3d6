// Draws text as paths, with the glyphs of Inter (OFL-1.1). sharp has no fonts, and servers often have none, so text in
// an SVG would become empty boxes. Rejected: FONTCONFIG_FILE, because it must be set before sharp is loaded.
//
// @fontsource/inter has one small file per script. A character is drawn with the first file that contains it.
import { readFile } from 'node:fs/promises'
import type { Font as Face, Glyph, PathCommand } from 'opentype.js'
import { packagedFile } from '../files.js'
import { short } from '../scenery/stage.js'

export interface Font {
  has(character: string): boolean
  /** Width of a text at `size`, in the unit of `size`. */
  width(text: string, size: number): number
  /** SVG path data of a text whose baseline begins at x, y. Characters missing from the font are skipped. */
  outline(text: string, x: number, y: number, size: number): string
}

/** The build copies these font files (`copyParts` in build.mjs). */
const SUBSETS = 'latin latin-ext cyrillic cyrillic-ext greek greek-ext vietnamese'.split(' ')

interface Letter {
  readonly face: Face
  readonly glyph: Glyph
}

/** Loads Inter for a text. All subsets take about 100 ms; Latin, which is enough for English, a fifth of that. */
export async function loadFont(text: string): Promise<Font> {
  const { default: opentype } = await import('opentype.js')
  const subsets = /[\u0100-\u1fff]/.test(text) ? SUBSETS : SUBSETS.slice(0, 1)
  const faces = await Promise.all(
    subsets.map(async (subset) => {
      const name = `inter-${subset}-500-normal.woff`
      const bytes = await readFile(packagedFile(name, `@fontsource/inter/files/${name}`))
      return opentype.parse(new Uint8Array(bytes).buffer as ArrayBuffer)
    }),
  )
  const letters = new Map<string, Letter | undefined>()
  const letterOf = (character: string): Letter | undefined => {
    if (!letters.has(character)) {
      const face = faces.find((candidate) => candidate.charToGlyphIndex(character) > 0)
      letters.set(character, face && { face, glyph: face.charToGlyph(character) })
    }
    return letters.get(character)
  }
  return {
    has: (character) => letterOf(character) !== undefined,
    width: (text, size) => set(text, size, letterOf).width,
    outline: (text, x, y, size) =>
      set(text, size, letterOf)
        .placed.map(({ glyph, at }) => pathData(glyph.getPath(x + at, y, size).commands))
        .join(''),
  }
}

/**
 * Returns the letters with their distances from the start, and the total width. Uses one glyph per character, and
 * kerning, but no ligatures: opentype.js 2.0.0 throws for some of Inter's ligature tables ("substFormat: 2 is not yet
 * supported"), and the supported scripts do not need ligatures.
 */
function set(text: string, size: number, letterOf: (character: string) => Letter | undefined) {
  const placed: { readonly glyph: Glyph; readonly at: number }[] = []
  let width = 0
  let before: Letter | undefined
  for (const character of text) {
    const letter = letterOf(character)
    if (letter === undefined) continue
    const { face, glyph } = letter
    const scale = size / face.unitsPerEm
    if (before?.face === face) width += face.getKerningValue(before.glyph, glyph) * scale
    placed.push({ glyph, at: width })
    width += (glyph.advanceWidth ?? 0) * scale
    before = letter
  }
  return { placed, width }
}

/**
 * Replaces `toPathData` of opentype.js, which rounds 949.0000000000001 to NaN, so that the line ends at that letter.
 */
function pathData(commands: readonly PathCommand[]): string {
  const points = ({ type, ...numbers }: PathCommand) => type + Object.values(numbers).map(short).join(' ')
  return commands.map(points).join('')
}

const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Cn}\u2028\u2029]+/gu
const SCRIPTS = (
  'Hiragana Katakana Han Hangul Arabic Hebrew Devanagari Bengali Tamil Telugu Thai Lao Khmer Myanmar Georgian ' +
  'Armenian Ethiopic Sinhala Tibetan Mongolian Cherokee'
).split(' ')
const OTHER_LETTER = `[${SCRIPTS.map((name) => `\\p{Script=${name}}`).join('')}ー]`
const PASSAGE = new RegExp(`${OTHER_LETTER}(?:[\\s\\p{P}\\p{M}]*${OTHER_LETTER})*`, 'gu')

/**
 * Returns one line of text that contains only characters of the font, and spaces. A passage in another script is
 * replaced by the script's name, as in `[Han]`: CJK fonts take 5 MB per weight, and right-to-left and Indic scripts need
 * shaping, which opentype.js does not support. `has` returns whether the font can draw a character.
 */
export function drawableText(prompt: string, has: (character: string) => boolean): string {
  const oneLine = prompt.normalize('NFC').replace(/\s+/gu, ' ').replace(INVISIBLE, '')
  const named = oneLine.replace(PASSAGE, (passage) => ` [${scriptOf(passage)}] `)
  return [...named]
    .filter((character) => character === ' ' || has(character))
    .join('')
    .replace(/ +/g, ' ')
    .replace(/ ([,.;:!?])/g, '$1')
    .trim()
}

function scriptOf(passage: string): string {
  const name = SCRIPTS.find((script) => new RegExp(`\\p{Script=${script}}`, 'u').test(passage))
  return name === 'Hiragana' || name === 'Katakana' ? 'Japanese' : (name ?? '…')
}

/**
 * Breaks text at spaces into at most `maxLines` lines, each no wider than `room`. Breaks a word that is longer than a
 * line. Text that does not fit ends in an ellipsis. `measure` returns the width of a text in the unit of `room`.
 */
export function wrapText(text: string, room: number, maxLines: number, measure: (text: string) => number) {
  const lines: string[] = []
  let rest = text.trim()
  while (rest !== '' && lines.length < maxLines) {
    const isLast = lines.length === maxLines - 1
    // No line has room for more than 400 characters.
    let end = Math.min(400, rest.length)
    while (end > 1 && measure(rest.slice(0, end)) > room) end--
    if (isLast && end < rest.length) while (end > 1 && measure(`${rest.slice(0, end)}…`) > room) end--
    const space = rest[end] === ' ' || end === rest.length || isLast ? end : rest.lastIndexOf(' ', end)
    const line = rest.slice(0, space > 0 ? space : end)
    rest = rest.slice(line.length).trimStart()
    lines.push(isLast && rest !== '' ? `${line.trimEnd()}…` : line.trimEnd())
  }
  return lines
}
