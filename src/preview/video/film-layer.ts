// A plane of a shot, ready for composing: I420 (a byte of luma per pixel, the two colour differences at half the
// resolution), each multiplied by its alpha, so that sampling between pixels leaves no dark seams. Converted once per
// shot; a frame is then additions, at half the bytes of RGBA.
import type { Size } from '../sizes.js'

/** One channel and its alpha, at one resolution. */
export interface ColourChannel {
  readonly width: number
  readonly height: number
  /** Multiplied by alpha. */
  readonly values: readonly Uint8Array[]
  readonly alpha: Uint8Array
  /** EMPTY, MIXED or OPAQUE for each cell of CELL x CELL values, row by row. Composing skips by it. */
  readonly cells: Uint8Array
  readonly cellsAcross: number
}

export interface FilmLayer {
  readonly luma: ColourChannel
  /** U and V. */
  readonly chroma: ColourChannel
}

export const CELL = 16
export const EMPTY = 0
export const MIXED = 1
export const OPAQUE = 2

/**
 * From RGBA (not premultiplied) of an even size. BT.709 in limited range, which players assume from 720 lines up and our
 * `colr` box declares. Exact integers: factors in 1/65536, four pixels to one colour difference.
 */
export function layerFromRgba(rgba: Uint8Array, { width, height }: Size): FilmLayer {
  const pixels = width * height
  const luma = new Uint8Array(pixels)
  const alpha = new Uint8Array(pixels)
  const [blue, red, half] = [0, 1, 2].map(() => new Uint8Array(pixels / 4)) as [
    Uint8Array,
    Uint8Array,
    Uint8Array,
  ]
  const words = new Int32Array(rgba.buffer, rgba.byteOffset, pixels)
  for (let row = 0; row < height; row += 2) {
    for (let column = 0; column < width; column += 2) {
      const above = row * width + column
      const below = above + width
      // Most of a plane is empty.
      if (
        ((words[above] as number) |
          (words[above + 1] as number) |
          (words[below] as number) |
          (words[below + 1] as number)) ===
        0
      )
        continue
      let [sumRed, sumGreen, sumBlue, sumAlpha] = [0, 0, 0, 0]
      for (let corner = 0; corner < 4; corner++) {
        const at = (corner < 2 ? above : below) + (corner & 1)
        const a = rgba[at * 4 + 3] as number
        const r = (((rgba[at * 4] as number) * a + 127) * 257) >> 16
        const g = (((rgba[at * 4 + 1] as number) * a + 127) * 257) >> 16
        const b = (((rgba[at * 4 + 2] as number) * a + 127) * 257) >> 16
        alpha[at] = a
        luma[at] = (r * 11966 + g * 40254 + b * 4064 + a * 4112 + 32768) >> 16
        sumRed += r
        sumGreen += g
        sumBlue += b
        sumAlpha += a
      }
      const at = (row * width) / 4 + column / 2
      blue[at] = (sumBlue * 28784 - sumRed * 6596 - sumGreen * 22188 + sumAlpha * 32896 + 131072) >> 18
      red[at] = (sumRed * 28784 - sumGreen * 26145 - sumBlue * 2639 + sumAlpha * 32896 + 131072) >> 18
      half[at] = (sumAlpha + 2) >> 2
    }
  }
  return {
    luma: channelOf([luma], alpha, width, height),
    chroma: channelOf([blue, red], half, width / 2, height / 2),
  }
}

function channelOf(
  values: readonly Uint8Array[],
  alpha: Uint8Array,
  width: number,
  height: number,
): ColourChannel {
  const cellsAcross = Math.ceil(width / CELL)
  const cells = new Uint8Array(cellsAcross * Math.ceil(height / CELL))
  for (let top = 0; top < height; top += CELL) {
    for (let left = 0; left < width; left += CELL) {
      let all = 255
      let any = 0
      for (let row = top; row < Math.min(top + CELL, height); row++) {
        const end = row * width + Math.min(left + CELL, width)
        for (let at = row * width + left; at < end; at++) {
          all &= alpha[at] as number
          any |= alpha[at] as number
        }
      }
      cells[(top / CELL) * cellsAcross + left / CELL] = any === 0 ? EMPTY : all === 255 ? OPAQUE : MIXED
    }
  }
  return { width, height, values, alpha, cells, cellsAcross }
}
