// Text as outlines. sharp has no fonts and servers often have none, so text in an SVG would become empty boxes; the glyphs
// of Inter (OFL-1.1) are drawn as paths. Rejected: FONTCONFIG_FILE, which must be set before sharp is first loaded.
//
// @fontsource/inter ships one small file per script; a character takes the first one that has it.
import { readFile } from 'node:fs/promises'
import type { Font as Face, Glyph, PathCommand } from 'opentype.js'
import { packagedFile } from '../packaged-file.js'
import { short } from '../scenery/drawing.js'

export interface Font {
  has(character: string): boolean
  /** The width of a text set at `size`, in the same unit. */
  width(text: string, size: number): number
  /** SVG path data of a text whose baseline begins at x, y. Characters that the font lacks leave no trace. */
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
      const end = `${short(command.x)} ${short(command.y)}`
      if (command.type === 'Q') return `Q${short(command.x1)} ${short(command.y1)} ${end}`
      if (command.type !== 'C') return command.type + end
      return `C${short(command.x1)} ${short(command.y1)} ${short(command.x2)} ${short(command.y2)} ${end}`
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
