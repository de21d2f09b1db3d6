// Text as outlines. sharp has no fonts and servers often have none, so text in an SVG would become empty boxes; the glyphs
// of Inter (OFL-1.1) are drawn as paths. Rejected: FONTCONFIG_FILE, which must be set before sharp is first loaded.
//
// @fontsource/inter ships one small file per script; a character takes the first one that has it.
import { readFile } from 'node:fs/promises'
import type { Font as Face, Glyph, PathCommand } from 'opentype.js'
import { packagedFile } from '../files.js'
import { svg } from '../scenery/stage.js'

export interface Font {
  has(character: string): boolean
  /** The width of a text set at `size`, in the same unit. */
  width(text: string, size: number): number
  /** SVG path data of a text whose baseline begins at x, y. Characters missing from the font are skipped. */
  outline(text: string, x: number, y: number, size: number): string
}

/** The build copies them (`FONT_SUBSETS` in build.mjs). */
const SUBSETS = 'latin latin-ext cyrillic cyrillic-ext greek greek-ext vietnamese'.split(' ')

interface Letter {
  readonly face: Face
  readonly glyph: Glyph
}

/**
 * `weight` is one of Inter's: 500 for running text, 600 for labels. All subsets are 127 KB and take about 100 ms to
 * read, Latin alone a fifth of that.
 */
export async function loadFont(weight: 500 | 600, subsets: readonly string[] = SUBSETS): Promise<Font> {
  const { default: opentype } = await import('opentype.js')
  const faces = await Promise.all(
    subsets.map(async (subset) => {
      const name = `inter-${subset}-${weight}-normal.woff`
      const bytes = await readFile(packagedFile(name, `@fontsource/inter/files/${name}`))
      return opentype.parse(new Uint8Array(bytes).buffer as ArrayBuffer)
    }),
  )
  return fontOf(faces)
}

function fontOf(faces: readonly Face[]): Font {
  const known = new Map<string, Letter | undefined>()
  const letterOf = (character: string): Letter | undefined => {
    if (!known.has(character)) known.set(character, findLetter(faces, character))
    return known.get(character)
  }
  return {
    has: (character) => letterOf(character) !== undefined,
    width: (text, size) => set(text, size, letterOf, () => undefined),
    outline(text, x, y, size) {
      let data = ''
      set(text, size, letterOf, ({ glyph }, at) => {
        data += pathData(glyph.getPath(x + at, y, size).commands)
      })
      return data
    },
  }
}

/** Not opentype.js's own `toPathData`: its rounding makes NaN of 949.0000000000001, and the line ends at that letter. */
function pathData(commands: readonly PathCommand[]): string {
  return commands
    .map((command) => {
      if (command.type === 'Z') return 'Z'
      const end = svg`${command.x} ${command.y}`
      if (command.type === 'Q') return svg`Q${command.x1} ${command.y1} ${String(end)}`
      if (command.type !== 'C') return command.type + end
      return svg`C${command.x1} ${command.y1} ${command.x2} ${command.y2} ${String(end)}`
    })
    .join('')
}

/**
 * Calls `place` for every letter with its distance from the start, and returns the width of the whole. One glyph per
 * character and kerning, no more: opentype.js 2.0.0 throws on some of Inter's ligature tables ("substFormat: 2 is not
 * yet supported") when it is given a string, and the scripts we letter can do without.
 */
function set(
  text: string,
  size: number,
  letterOf: (character: string) => Letter | undefined,
  place: (letter: Letter, at: number) => void,
): number {
  let at = 0
  let before: Letter | undefined
  for (const character of text) {
    const letter = letterOf(character)
    if (letter === undefined) continue
    const scale = size / letter.face.unitsPerEm
    if (before?.face === letter.face) at += letter.face.getKerningValue(before.glyph, letter.glyph) * scale
    place(letter, at)
    at += (letter.glyph.advanceWidth ?? 0) * scale
    before = letter
  }
  return at
}

function findLetter(faces: readonly Face[], character: string): Letter | undefined {
  const face = faces.find((candidate) => candidate.charToGlyphIndex(character) > 0)
  return face === undefined ? undefined : { face, glyph: face.charToGlyph(character) }
}

const CONTROLS = /[\p{Cc}\p{Cf}\p{Cs}\p{Cn}\u2028\u2029]+/gu
const EMOJI = /\p{Extended_Pictographic}|\p{Emoji_Modifier}|\p{Regional_Indicator}|\u20e3|\ufe0f/u
const NAMED_SCRIPTS =
  'Han Hangul Arabic Hebrew Devanagari Bengali Tamil Telugu Thai Lao Khmer Myanmar Georgian Armenian ' +
  'Ethiopic Sinhala Tibetan Mongolian Cherokee'
const SCRIPTS = NAMED_SCRIPTS.split(' ').map((name) => ({
  name,
  test: new RegExp(`\\p{Script=${name}}`, 'u'),
}))

/**
 * One line of text of which every character is in the font or is a space. A passage in another script becomes the script's
 * name in brackets with its known words, `[Han: fox, snow]`: CJK fonts take 5 MB per weight, and right-to-left and Indic
 * scripts need shaping, which opentype.js does not do.
 * `has`: whether the font can draw a character (a string of one code point). `glossOf`: the known words of a passage that it
 * cannot draw.
 */
export function drawableText(
  prompt: string,
  has: (character: string) => boolean,
  glossOf: (passage: string) => readonly string[] = () => [],
): string {
  let text = ''
  let passage = ''
  // Spaces and punctuation after a passage, which belong to it if it continues.
  let gap = ''
  const close = () => {
    text += passage === '' ? gap : ` ${named(passage, glossOf)} ${gap}`
    passage = ''
    gap = ''
  }
  for (const character of halfWidth(prompt.normalize('NFC')).replace(/\s+/gu, ' ').replace(CONTROLS, '')) {
    if (character === ' ' || has(character)) {
      if (passage === '' || /[\p{L}\p{N}\p{Co}]/u.test(character)) {
        close()
        text += character
      } else gap += character
      continue
    }
    // A combining mark is dropped with its letter, or alone.
    if (/\p{Mark}/u.test(character)) passage += passage === '' ? '' : character
    else if (!EMOJI.test(character) && !/\p{Co}/u.test(character)) {
      passage += gap + character
      gap = ''
    }
  }
  close()
  return text
    .replace(/ +/g, ' ')
    .replace(/ ([,.;:!?])/g, '$1')
    .trim()
}

/** `[Arabic: fox, snow]`. */
function named(passage: string, glossOf: (passage: string) => readonly string[]): string {
  const name = /[\p{Script=Hiragana}\p{Script=Katakana}]/u.test(passage)
    ? 'Japanese'
    : (SCRIPTS.find(({ test }) => test.test(passage))?.name ?? '…')
  const gloss = glossOf(passage)
  return gloss.length === 0 ? `[${name}]` : `[${name}: ${gloss.join(', ')}]`
}

/** The punctuation of Chinese and Japanese as ours, so that it parts the names of scripts. */
function halfWidth(text: string): string {
  return text
    .replace(/[\uff01-\uff5e]/g, (wide) => String.fromCharCode(wide.charCodeAt(0) - 0xfee0))
    .replace(/[、﹐]/g, ',')
    .replace(/。/g, '.')
}

/**
 * At most `most` lines no wider than `room`, broken at spaces; a word too long for a line is broken where it ends.
 * What does not fit ends in an ellipsis. `measure` gives the width of a text in the unit of `room`.
 */
export function wrapText(
  text: string,
  room: number,
  most: number,
  measure: (text: string) => number,
): string[] {
  const lines: string[] = []
  let rest = text.trim()
  while (rest !== '' && lines.length < most) {
    const whole = longestFit(rest, room, measure)
    const last = lines.length === most - 1
    if (whole === rest) {
      lines.push(rest)
      break
    }
    if (last) {
      lines.push(`${longestFit(rest, room - measure('…'), measure).trimEnd()}…`)
      break
    }
    const space = rest[whole.length] === ' ' ? whole.length : whole.lastIndexOf(' ')
    const line = space > 0 ? rest.slice(0, space) : whole
    lines.push(line.trimEnd())
    rest = rest.slice(line.length).trimStart()
  }
  return lines
}

/** The longest beginning that fits, found by halving: a prompt may be megabytes long. Never less than one character. */
function longestFit(text: string, room: number, measure: (text: string) => number): string {
  // Beyond this many characters nothing fits in any line we draw, so that measuring stays cheap.
  const start = text.slice(0, 400)
  if (start === text && measure(start) <= room) return start
  let fits = 1
  let tooLong = start.length + 1
  while (tooLong - fits > 1) {
    const half = (fits + tooLong) >> 1
    if (measure(start.slice(0, half)) <= room) fits = half
    else tooLong = half
  }
  return start.slice(0, fits)
}
