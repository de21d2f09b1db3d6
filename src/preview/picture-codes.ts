/**
 * The escape codes that draw a picture in a terminal. They contain only numbers and encoded pixels, so nothing in a
 * picture reaches the terminal. Each ends below the picture, at the start of a line. Pure.
 */
import type { Size } from './size.js'

export interface Pixels extends Size {
  /** Four bytes (RGBA) for each pixel, in rows. */
  readonly data: Uint8Array
}

/** Codes for kitty, with at most 4,096 characters of base64 each. q=2: it never replies, for the shell would read that. */
export function kittyCodes(png: Buffer): string {
  const chunks = png.toString('base64').match(/.{1,4096}/g) ?? []
  const codes = chunks.map((chunk, index) => {
    const first = index === 0 ? 'a=T,f=100,q=2,' : ''
    return `\u001b_G${first}m=${index === chunks.length - 1 ? 0 : 1};${chunk}\u001b\\`
  })
  return `${codes.join('')}\n`
}

/** Codes for iTerm2. */
export const iterm2Codes = (png: Buffer): string =>
  `\u001b]1337;File=inline=1;size=${png.length}:${png.toString('base64')}\u0007\n`

/** Returns the parts of the colour of a pixel. Undefined outside the picture, and for a pixel that is transparent. */
function colourAt({ width, height, data }: Pixels, x: number, y: number): readonly number[] | undefined {
  const [red = 0, green = 0, blue = 0, alpha = 0] = data.subarray(4 * (y * width + x))
  return y < height && alpha >= 128 ? [red, green, blue] : undefined
}

/** Draws two rows of pixels as one line of characters. `trueColour`: 24 bits, else the nearest of 256 colours. */
export function halfBlocks(picture: Pixels, trueColour: boolean): string {
  const paint = (ground: 38 | 48, parts: readonly number[] | undefined): string => {
    if (parts === undefined) return `${ground + 1}`
    return trueColour ? `${ground};2;${parts.join(';')}` : `${ground};5;${nearestOf256(parts)}`
  }
  let text = ''
  for (let y = 0; y < picture.height; y += 2) {
    let last = ''
    for (let x = 0; x < picture.width; x++) {
      const [upper, lower] = [colourAt(picture, x, y), colourAt(picture, x, y + 1)]
      const block = upper !== undefined ? '▀' : lower !== undefined ? '▄' : ' '
      const [front, back] = block === '▄' ? [lower, upper] : [upper, lower]
      const codes = `\u001b[${paint(38, front)};${paint(48, back)}m`
      text += codes === last ? block : codes + block
      last = codes
    }
    text += '\u001b[0m\n'
  }
  return text
}

/** The steps of each part in xterm's cube of colours. */
const STEPS = [0, 95, 135, 175, 215, 255]

/** Returns the nearest of xterm's 256 colours: in the cube, or one of 24 greys. */
function nearestOf256(parts: readonly number[]): number {
  const distance = (others: readonly number[]) =>
    parts.reduce((sum, part, index) => sum + (part - (others[index] ?? 0)) ** 2, 0)
  const cube = parts.map((part) => (part < 48 ? 0 : part < 115 ? 1 : Math.floor((part - 35) / 40)))
  const mean = parts.reduce((sum, part) => sum + part, 0) / parts.length
  const grey = Math.min(23, Math.max(0, Math.round((mean - 8) / 10)))
  const isGrey = distance(parts.map(() => 8 + 10 * grey)) < distance(cube.map((step) => STEPS[step] ?? 0))
  return isGrey ? 232 + grey : cube.reduce((sum, step) => 6 * sum + step, 0) + 16
}
