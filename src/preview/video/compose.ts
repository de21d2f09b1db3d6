// Composes frames from the layers of a shot, in I420. Uses plain loops over bytes, because sharp would need RGBA frames
// and a conversion of each frame. Each tile is drawn from the uppermost layer that covers it, so a hidden sky costs
// nothing.
import type { Size } from '../render-request.js'
import type { Window } from './shots.js'

/** Planes of one frame: width x height bytes of luma, then U and V with a quarter of that size each. */
export type Frame = Uint8Array

export interface LayerView {
  readonly layer: FilmLayer
  /** Part of the layer that fills the frame. */
  readonly window: Window
}

/** Draws the views in order, the furthest first, and overwrites `frame`. The first view must cover the whole frame. */
export function composeFrame(frame: Frame, { width, height }: Size, views: readonly LayerView[]): void {
  const pixels = width * height
  const luma = frame.subarray(0, pixels)
  const blue = frame.subarray(pixels, pixels * 1.25)
  const red = frame.subarray(pixels * 1.25)
  composeChannel([luma], { width, height }, views, 'luma')
  composeChannel([blue, red], { width: width / 2, height: height / 2 }, views, 'chroma')
}

/** Mixes `held` into the frame. `share` is in 1/256. */
export function dissolve(frame: Frame, held: Frame, share: number): void {
  for (let at = 0; at < frame.length; at++) {
    const now = frame[at] as number
    frame[at] = now + ((((held[at] as number) - now) * share + 128) >> 8)
  }
}

interface Tile {
  readonly left: number
  readonly top: number
  readonly right: number
  readonly bottom: number
}

/** A channel, and the positions of the frame's columns and rows in it. */
interface Sampled {
  readonly channel: ColourChannel
  readonly columns: Axis
  readonly rows: Axis
}

/**
 * For each pixel of the frame along one direction: the lower of the two source pixels around it, and the share of the
 * upper source pixel in 1/256.
 */
interface Axis {
  readonly lower: Int32Array
  readonly share: Uint8Array
}

function composeChannel(
  targets: readonly Uint8Array[],
  { width, height }: Size,
  views: readonly LayerView[],
  name: keyof FilmLayer,
): void {
  const sampled = views.map(({ layer, window }): Sampled => {
    const channel = layer[name]
    return {
      channel,
      columns: axisOf(window.left, window.width, channel.width, width),
      rows: axisOf(window.top, window.height, channel.height, height),
    }
  })
  const coverages = sampled.map(() => EMPTY)
  for (let top = 0; top < height; top += CELL) {
    for (let left = 0; left < width; left += CELL) {
      const right = Math.min(left + CELL, width)
      const tile = { left, top, right, bottom: Math.min(top + CELL, height) }
      let index = sampled.length
      do {
        index--
        coverages[index] = coverageOf(sampled[index] as Sampled, tile)
      } while (index > 0 && coverages[index] !== OPAQUE)
      for (; index < sampled.length; index++)
        if (coverages[index] !== EMPTY)
          drawTile(sampled[index] as Sampled, tile, coverages[index] === OPAQUE, targets, width)
    }
  }
}

/**
 * Maps `pixels` pixels of the frame to a part of the layer. `start` and `extent` are shares of the layer's `length`.
 */
function axisOf(start: number, extent: number, length: number, pixels: number): Axis {
  const lower = new Int32Array(pixels)
  const share = new Uint8Array(pixels)
  const step = (extent * length) / pixels
  // Pixel centres: the centre of a frame pixel is at the centre of the source area that it shows.
  const first = start * length + step / 2 - 0.5
  for (let pixel = 0; pixel < pixels; pixel++) {
    // Round to 1/256, so that a position near a whole pixel is exactly on it.
    const at = Math.round(Math.min(length - 1, Math.max(0, first + pixel * step)) * 256)
    lower[pixel] = Math.min(length - 2, at >> 8)
    share[pixel] = Math.min(255, at - (lower[pixel] as number) * 256)
  }
  return { lower, share }
}

function coverageOf({ channel: { cells, cellsAcross }, columns, rows }: Sampled, tile: Tile): number {
  const firstColumn = ((columns.lower[tile.left] as number) / CELL) | 0
  const lastColumn = ((columns.lower[tile.right - 1] as number) + 1) / CELL
  const firstRow = ((rows.lower[tile.top] as number) / CELL) | 0
  const lastRow = ((rows.lower[tile.bottom - 1] as number) + 1) / CELL
  const first = cells[firstRow * cellsAcross + firstColumn] as number
  for (let row = firstRow; row <= lastRow; row++)
    for (let column = firstColumn; column <= lastColumn; column++)
      if (cells[row * cellsAcross + column] !== first) return MIXED
  return first
}

/** `isOpaque`: whether the layer covers the whole tile. */
function drawTile(
  { channel, columns, rows }: Sampled,
  { left, top, right, bottom }: Tile,
  isOpaque: boolean,
  targets: readonly Uint8Array[],
  width: number,
): void {
  const { width: stride, values, alpha } = channel
  for (let row = top; row < bottom; row++) {
    const source = (rows.lower[row] as number) * stride
    const down = rows.share[row] as number
    for (let plane = 0; plane < targets.length; plane++) {
      const target = targets[plane] as Uint8Array
      const value = values[plane] as Uint8Array
      const start = row * width
      if (isOpaque) {
        for (let column = left; column < right; column++) {
          const at = source + (columns.lower[column] as number)
          target[start + column] = sample(value, at, at + stride, columns.share[column] as number, down)
        }
      } else {
        for (let column = left; column < right; column++) {
          const at = source + (columns.lower[column] as number)
          blend(target, start + column, value, alpha, at, at + stride, columns.share[column] as number, down)
        }
      }
    }
  }
}

/** Blends one value, premultiplied by its alpha, over the target. */
function blend(
  target: Uint8Array,
  to: number,
  values: Uint8Array,
  alpha: Uint8Array,
  at: number,
  under: number,
  across: number,
  down: number,
): void {
  // Most pixels are fully transparent.
  const corners =
    (alpha[at] as number) |
    (alpha[at + 1] as number) |
    (alpha[under] as number) |
    (alpha[under + 1] as number)
  if (corners === 0) return
  const open = 255 - sample(alpha, at, under, across, down)
  const value = sample(values, at, under, across, down)
  // Cannot overflow: in limited range, no value is above 240.
  target[to] = value + ((((target[to] as number) * open + 127) * 257) >> 16)
}

/**
 * Interpolates between four values: two at `at`, and two in the row below at `under`. `across` and `down` are in 1/256.
 */
function sample(values: Uint8Array, at: number, under: number, across: number, down: number): number {
  const one = values[at] as number
  const upper = (one << 8) + ((values[at + 1] as number) - one) * across
  const two = values[under] as number
  const lower = (two << 8) + ((values[under + 1] as number) - two) * across
  return (upper + (((lower - upper) * down) >> 8) + 128) >> 8
}

/** One channel and its alpha, at the same resolution. */
export interface ColourChannel {
  readonly width: number
  readonly height: number
  /** Premultiplied by alpha. */
  readonly values: readonly Uint8Array[]
  readonly alpha: Uint8Array
  /** EMPTY, MIXED or OPAQUE for each cell of CELL x CELL values, row by row. Composing skips hidden and empty cells. */
  readonly cells: Uint8Array
  readonly cellsAcross: number
}

/**
 * A plane of a shot in I420 (one byte of luma per pixel, two colour differences at half the resolution). Values are
 * premultiplied by alpha, so that sampling between pixels leaves no dark seams. Converted once per shot; half the bytes
 * of RGBA.
 */
export interface FilmLayer {
  readonly luma: ColourChannel
  /** The U and V values. */
  readonly chroma: ColourChannel
}

const CELL = 16
const EMPTY = 0
const MIXED = 1
const OPAQUE = 2

/**
 * Converts RGBA (not premultiplied; width and height must be even) to BT.709 in limited range, which players assume
 * from 720 lines up and the `colr` box declares. Uses exact integers: factors in 1/65536, and one colour difference for
 * four pixels.
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
  const rgbaWords = new Int32Array(rgba.buffer, rgba.byteOffset, pixels)
  for (let row = 0; row < height; row += 2) {
    for (let column = 0; column < width; column += 2) {
      const above = row * width + column
      const below = above + width
      // Skip empty pixels: most of a plane is empty.
      if (
        ((rgbaWords[above] as number) |
          (rgbaWords[above + 1] as number) |
          (rgbaWords[below] as number) |
          (rgbaWords[below + 1] as number)) ===
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
