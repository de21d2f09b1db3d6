// A plane of a shot as the film needs it: I420 (a byte of luma per pixel, the two colour differences at half the
// resolution), each multiplied by its transparency, so that sampling between pixels leaves no dark seams. It is
// converted once per shot, into the memory of the kernel; composing a frame is then addition, at half the bytes of RGBA.
import type { Size } from '../sizes.js'
import { type KernelMemory, withRoom } from './memory.js'

/** One channel and its transparency, at one resolution. Its planes are addresses in the memory of the kernel. */
export interface Channel {
  readonly width: number
  readonly height: number
  /** Multiplied by transparency. */
  readonly values: readonly number[]
  /** 0 transparent, 255 opaque. */
  readonly alpha: number
  /** A byte for each cell of CELL x CELL values, row by row: empty, mixed or opaque. Composing skips by it. */
  readonly cells: number
  readonly cellsAcross: number
}

export interface Layer {
  readonly luma: Channel
  /** U and V. */
  readonly chroma: Channel
  /** What it takes up. */
  readonly address: number
  readonly bytes: number
}

/** What of the kernel makes layers: see assembly/compose.ts. */
export interface Splitter {
  split(
    rgba: number,
    luma: number,
    alpha: number,
    chroma: number,
    apart: number,
    width: number,
    height: number,
  ): void
  survey(alpha: number, width: number, height: number, cells: number): void
}

/** As the kernel surveys them. */
const CELL = 16
/** Even, because four pixels share a colour. */
const STRIP_ROWS = 16

/**
 * From RGBA (not premultiplied) of an even size of at least 8 x 2. BT.709 in limited range: what players take for granted
 * from 720 lines up, and what our `colr` box declares.
 */
export function layerFromRgba(
  memory: KernelMemory,
  kernel: Splitter,
  rgba: Uint8Array,
  { width, height }: Size,
): Layer {
  const whole = withRoom(width * height)
  const quarter = withRoom((width * height) / 4)
  const cells = withRoom(cellsOf(width) * cellsOf(height))
  const bytes = 2 * whole + 3 * quarter + 2 * cells
  const address = memory.take(bytes)
  const luma = address
  const alpha = luma + whole
  const blue = alpha + whole
  const red = blue + quarter
  const half = red + quarter
  const lumaCells = half + quarter
  const chromaCells = lumaCells + cells
  // Strip by strip: what lies in the nearest cache is not fetched twice, and no memory is taken for the whole.
  const pixels = memory.take(STRIP_ROWS * width * 4)
  for (let top = 0; top < height; top += STRIP_ROWS) {
    const rows = Math.min(STRIP_ROWS, height - top)
    memory.bytes.set(rgba.subarray(top * width * 4, (top + rows) * width * 4), pixels)
    const at = top * width
    kernel.split(pixels, luma + at, alpha + at, blue + at / 4, quarter, width, rows)
  }
  memory.giveBack(pixels, STRIP_ROWS * width * 4)
  kernel.survey(alpha, width, height, lumaCells)
  kernel.survey(half, width / 2, height / 2, chromaCells)
  return {
    luma: { width, height, values: [luma], alpha, cells: lumaCells, cellsAcross: cellsOf(width) },
    chroma: {
      width: width / 2,
      height: height / 2,
      values: [blue, red],
      alpha: half,
      cells: chromaCells,
      cellsAcross: cellsOf(width / 2),
    },
    address,
    bytes,
  }
}

const cellsOf = (length: number): number => Math.ceil(length / CELL)
