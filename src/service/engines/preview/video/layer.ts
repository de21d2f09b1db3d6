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

/**
 * From RGBA (not premultiplied) of an even size. BT.709 in limited range: what players take for granted from 720 lines
 * up, and what our `colr` box declares.
 */
export function layerFromRgba(rgba: Uint8Array, { width, height }: Size): Layer {
  const pixels = width * height
  const luma = new Uint8Array(pixels)
  const alpha = new Uint8Array(pixels)
  const blue = new Uint8Array(pixels / 4)
  const red = new Uint8Array(pixels / 4)
  const half = new Uint8Array(pixels / 4)
  for (let row = 0; row < height; row += 2) {
    for (let column = 0; column < width; column += 2) {
      let sumBlue = 0
      let sumRed = 0
      let sumAlpha = 0
      for (let corner = 0; corner < 4; corner++) {
        const at = (row + (corner >> 1)) * width + column + (corner & 1)
        const a = rgba[at * 4 + 3] as number
        if (a === 0) continue
        const r = (rgba[at * 4] as number) * a
        const g = (rgba[at * 4 + 1] as number) * a
        const b = (rgba[at * 4 + 2] as number) * a
        alpha[at] = a
        luma[at] = (16 * a + 0.182586 * r + 0.614231 * g + 0.062007 * b) / 255 + 0.5
        sumBlue += 128 * a - 0.100644 * r - 0.338572 * g + 0.439216 * b
        sumRed += 128 * a + 0.439216 * r - 0.398942 * g - 0.040274 * b
        sumAlpha += a
      }
      const at = ((row >> 1) * width) / 2 + (column >> 1)
      blue[at] = sumBlue / 1020 + 0.5
      red[at] = sumRed / 1020 + 0.5
      half[at] = sumAlpha / 4 + 0.5
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
