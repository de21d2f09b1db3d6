// One channel of one layer, read through a window for one frame: each row of the frame lies between two rows of the
// layer, each column between two columns; both are mixed in steps of 1/256.
//
// Nearly all pixels of a paper cut are wholly there or not there at all, so the
// work is done tile by tile: a tile that is empty is skipped, one that is opaque needs no transparency.
import type { Window } from './camera.js'
import { CELL, type Channel, EMPTY, MIXED, OPAQUE } from './layer.js'
import { layMixed, layOpaque, mixRows } from './rows.js'

/** A part of the frame, in the channel's pixels. */
export interface Tile {
  readonly left: number
  readonly top: number
  readonly right: number
  readonly bottom: number
}

export class Sampler {
  readonly #channel: Channel
  readonly #width: number
  readonly #columns: Axis
  readonly #rows: Axis
  readonly #line: Uint8Array
  readonly #veil: Uint8Array

  constructor(channel: Channel, window: Window, width: number, height: number) {
    this.#channel = channel
    this.#width = width
    this.#columns = axis(window.left, window.width, channel.width, width)
    this.#rows = axis(window.top, window.height, channel.height, height)
    this.#line = new Uint8Array(channel.width)
    this.#veil = new Uint8Array(channel.width)
  }

  /** How much of a tile this layer covers: EMPTY, MIXED or OPAQUE. */
  coverage({ left, top, right, bottom }: Tile): number {
    const { cells, cellsAcross } = this.#channel
    const columns = this.#columns.whole
    const rows = this.#rows.whole
    const firstColumn = Math.floor((columns[left] as number) / CELL)
    const lastColumn = Math.floor(((columns[right - 1] as number) + 1) / CELL)
    const firstRow = Math.floor((rows[top] as number) / CELL)
    const lastRow = Math.floor(((rows[bottom - 1] as number) + 1) / CELL)
    const first = cells[firstRow * cellsAcross + firstColumn] as number
    for (let row = firstRow; row <= lastRow; row++) {
      for (let column = firstColumn; column <= lastColumn; column++) {
        if (cells[row * cellsAcross + column] !== first) return MIXED
      }
    }
    return first
  }

  /** Lays a tile onto the channel's targets (one for luma, U and V for chroma). */
  draw(tile: Tile, coverage: number, targets: readonly Uint8Array[]): void {
    if (coverage === EMPTY) return
    const { whole, share } = this.#columns
    const stride = this.#channel.width
    const from = whole[tile.left] as number
    const to = (whole[tile.right - 1] as number) + 2
    for (let row = tile.top; row < tile.bottom; row++) {
      const source = (this.#rows.whole[row] as number) * stride
      const part = this.#rows.share[row] as number
      const start = row * this.#width
      // Between two rows both are mixed into a line first; on a row (nothing moves vertically) it is read as it is.
      const offset = part === 0 ? source : 0
      const { alpha, values } = this.#channel
      if (part !== 0 && coverage === MIXED) mixRows(alpha, source, stride, part, from, to, this.#veil)
      const veil = part === 0 ? alpha : this.#veil
      for (let index = 0; index < targets.length; index++) {
        const target = targets[index] as Uint8Array
        const value = values[index] as Uint8Array
        if (part !== 0) mixRows(value, source, stride, part, from, to, this.#line)
        const line = part === 0 ? value : this.#line
        if (coverage === OPAQUE) layOpaque(target, start, tile.left, tile.right, line, offset, whole, share)
        else layMixed(target, start, tile.left, tile.right, line, veil, offset, whole, share)
      }
    }
  }
}

/** For each pixel of the frame along one direction: the lower of the two pixels around it, the upper one's share. */
interface Axis {
  readonly whole: Int32Array
  readonly share: Uint8Array
}

function axis(start: number, extent: number, length: number, pixels: number): Axis {
  const whole = new Int32Array(pixels)
  const share = new Uint8Array(pixels)
  const step = (extent * length) / pixels
  // Pixel centres: the middle of the frame's pixel lies on the middle of what it shows.
  const first = start * length + step / 2 - 0.5
  for (let pixel = 0; pixel < pixels; pixel++) {
    // In 1/256 from here on: what is a whole pixel but for the last digits of a float must count as one.
    const at = Math.round(Math.min(length - 1, Math.max(0, first + pixel * step)) * 256)
    const lower = Math.min(length - 2, at >> 8)
    whole[pixel] = lower
    share[pixel] = Math.min(255, at - lower * 256)
  }
  return { whole, share }
}
