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

/** Draws two rows of pixels as one line of characters. `trueColour`: 24 bits, else the nearest of xterm's cube. */
export function halfBlocks({ width, height, data }: Pixels, trueColour: boolean): string {
  /** Returns the code of a pixel. Undefined outside the picture, and for a pixel that is transparent. */
  const colourAt = (x: number, y: number): string | undefined => {
    const [red = 0, green = 0, blue = 0, alpha = 0] = data.subarray(4 * (y * width + x))
    if (y >= height || alpha < 128) return undefined
    if (trueColour) return `8;2;${red};${green};${blue}`
    const [r = 0, g = 0, b = 0] = [red, green, blue].map((part) => Math.max(0, Math.round((part - 55) / 40)))
    return `8;5;${16 + 36 * r + 6 * g + b}`
  }
  let text = ''
  for (let y = 0; y < height; y += 2) {
    let last = ''
    for (let x = 0; x < width; x++) {
      const [upper, lower] = [colourAt(x, y), colourAt(x, y + 1)]
      const block = upper !== undefined ? '▀' : lower !== undefined ? '▄' : ' '
      const [front = '9', back = '9'] = block === '▄' ? [lower] : [upper, lower]
      const codes = `\u001b[3${front};4${back}m`
      text += codes === last ? block : codes + block
      last = codes
    }
    text += '\u001b[0m\n'
  }
  return text
}
