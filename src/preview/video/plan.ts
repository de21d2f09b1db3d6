// Which pixels of a layer a frame is made of, along each direction: each row of the frame lies between two rows of the
// layer, each column between two columns, and both are mixed in steps of 1/256. Written the way the kernel reads it.

/** Columns come in blocks, as many as the kernel takes at once. */
export const BLOCK = 16
const BLOCK_BYTES = 48
const ROW_BYTES = 8

/** For each pixel of the frame along one direction: the lower of the two pixels around it, the upper one's share. */
export interface Axis {
  readonly whole: Int32Array
  readonly share: Uint8Array
}

/**
 * `start` and `extent` are shares of the layer's `length`. `pixels` of the frame see that part; up to `padded` the last
 * one is repeated.
 */
export function planAxis(
  start: number,
  extent: number,
  length: number,
  pixels: number,
  padded = pixels,
): Axis {
  const whole = new Int32Array(padded)
  const share = new Uint8Array(padded)
  const step = (extent * length) / pixels
  // Pixel centres: the middle of the frame's pixel lies on the middle of what it shows.
  const first = start * length + step / 2 - 0.5
  for (let pixel = 0; pixel < padded; pixel++) {
    // In 1/256 from here on: what is a whole pixel but for the last digits of a float must count as one.
    const place = first + Math.min(pixel, pixels - 1) * step
    const at = Math.round(Math.min(length - 1, Math.max(0, place)) * 256)
    const lower = Math.min(length - 2, at >> 8)
    whole[pixel] = lower
    share[pixel] = Math.min(255, at - lower * 256)
  }
  return { whole, share }
}

export const rowBytes = (rows: number): number => rows * ROW_BYTES
export const blockBytes = (columns: number): number => (columns / BLOCK) * BLOCK_BYTES

export function writeRows({ whole, share }: Axis, words: Int32Array, at: number): void {
  for (let row = 0; row < whole.length; row++) {
    words[at / 4 + row * 2] = whole[row] as number
    words[at / 4 + row * 2 + 1] = share[row] as number
  }
}

/** Throws when a block reaches over more columns than the kernel can see at once, which no camera of ours does. */
export function writeBlocks({ whole, share }: Axis, words: Int32Array, bytes: Uint8Array, at: number): void {
  for (let block = 0; block < whole.length / BLOCK; block++) {
    const plan = at + block * BLOCK_BYTES
    const begin = whole[block * BLOCK] as number
    words[plan / 4] = begin
    for (let column = 0; column < BLOCK; column++) {
      const place = (whole[block * BLOCK + column] as number) - begin
      if (place > 30) throw new RangeError('a frame is drawn from a layer that is too large for it')
      bytes[plan + 16 + column] = place
      bytes[plan + 32 + column] = share[block * BLOCK + column] as number
    }
  }
}
