// A plane of a shot as the film needs it: I420 (a byte of luma per pixel, the two colour differences at half the
// resolution), each multiplied by its transparency, so that sampling between pixels leaves no dark seams. It is
// converted once per shot; composing a frame is then addition, at half the bytes of RGBA.
import type { Size } from '../sizes.js'

/** One channel and its transparency, at one resolution. */
export interface Channel {
  readonly width: number
  readonly height: number
  /** Multiplied by transparency. */
  readonly values: readonly Uint8Array[]
  /** 0 transparent, 255 opaque. */
  readonly alpha: Uint8Array
  /** Per cell of CELL x CELL values, row by row: EMPTY, MIXED or OPAQUE. Composing skips by it. */
  readonly cells: Uint8Array
  readonly cellsAcross: number
}

export interface Layer {
  readonly luma: Channel
  /** U and V. */
  readonly chroma: Channel
}

export const CELL = 16
export const EMPTY = 0
export const MIXED = 1
export const OPAQUE = 2

const HALF = 32_768
/** 16 and 128 in 1/65536, over 255: what black and grey are for each step of cover. */
const BLACK = 4_112
const GREY = 32_896

/**
 * From RGBA (not premultiplied) of an even size. BT.709 in limited range: what players take for granted from 720 lines
 * up, and what our `colr` box declares.
 */
export function layerFromRgba(rgba: Uint8Array<ArrayBuffer>, { width, height }: Size): Layer {
  const pixels = width * height
  const luma = new Uint8Array(pixels)
  const alpha = new Uint8Array(pixels)
  const blue = new Uint8Array(pixels / 4)
  const red = new Uint8Array(pixels / 4)
  const half = new Uint8Array(pixels / 4)
  // A pixel as one number, and integers in 1/65536: a third of the time of reading bytes and reckoning in floats.
  const whole = rgba.byteOffset % 4 === 0 ? rgba : rgba.slice()
  const words = new Uint32Array(whole.buffer, whole.byteOffset, pixels)
  for (let row = 0; row < height; row += 2) {
    let at = ((row >> 1) * width) >> 1
    for (let column = 0; column < width; column += 2, at++) {
      const first = row * width + column
      const above = (words[first] as number) | (words[first + 1] as number)
      // Most of a plane is empty.
      if ((above | (words[first + width] as number) | (words[first + width + 1] as number)) === 0) continue
      let sumRed = 0
      let sumGreen = 0
      let sumBlue = 0
      let sumAlpha = 0
      for (let corner = 0; corner < 4; corner++) {
        const place = first + (corner >> 1) * width + (corner & 1)
        const word = words[place] as number
        const a = word >>> 24
        if (a === 0) continue
        let r = word & 255
        let g = (word >> 8) & 255
        let b = (word >> 16) & 255
        if (a !== 255) {
          // Times alpha, over 255, rounded.
          r = ((r * a + 127) * 257) >> 16
          g = ((g * a + 127) * 257) >> 16
          b = ((b * a + 127) * 257) >> 16
        }
        alpha[place] = a
        luma[place] = (r * 11966 + g * 40254 + b * 4064 + a * BLACK + HALF) >> 16
        sumRed += r
        sumGreen += g
        sumBlue += b
        sumAlpha += a
      }
      if (sumAlpha === 0) continue
      blue[at] = (sumBlue * 28784 - sumRed * 6596 - sumGreen * 22188 + sumAlpha * GREY + 4 * HALF) >> 18
      red[at] = (sumRed * 28784 - sumGreen * 26145 - sumBlue * 2639 + sumAlpha * GREY + 4 * HALF) >> 18
      half[at] = (sumAlpha + 2) >> 2
    }
  }
  return {
    luma: channel([luma], alpha, width, height),
    chroma: channel([blue, red], half, width / 2, height / 2),
  }
}

function channel(values: readonly Uint8Array[], alpha: Uint8Array, width: number, height: number): Channel {
  const cellsAcross = Math.ceil(width / CELL)
  const cells = new Uint8Array(cellsAcross * Math.ceil(height / CELL))
  for (let top = 0; top < height; top += CELL) {
    for (let left = 0; left < width; left += CELL) {
      let all = 255
      let any = 0
      for (let row = top; row < Math.min(top + CELL, height); row++) {
        for (let at = row * width + left; at < row * width + Math.min(left + CELL, width); at++) {
          all &= alpha[at] as number
          any |= alpha[at] as number
        }
      }
      cells[(top / CELL) * cellsAcross + left / CELL] = any === 0 ? EMPTY : all === 255 ? OPAQUE : MIXED
    }
  }
  return { width, height, values, alpha, cells, cellsAcross }
}
