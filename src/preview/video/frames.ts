// Composes the frames of a film in I420: one byte of luma per pixel, then two colour differences at half the resolution.
// A frame is a part of a flat stage, and opaque overlays that do not move, copied row by row.
import type { Size } from '../size.js'

/** An opaque picture in I420. Width and height are even. */
export interface Layer extends Size {
  readonly data: Uint8Array
}

/**
 * Converts RGB to BT.709 in limited range, which players assume from 720 lines up and the `colr` box declares. Uses
 * exact integers: factors in 1/65536, and one colour difference for four pixels.
 */
export function layerFromRgb(rgb: Uint8Array, { width, height }: Size): Layer {
  const pixels = width * height
  const data = new Uint8Array(pixels * 1.5)
  let half = pixels
  for (let row = 0; row < height; row += 2) {
    for (let column = 0; column < width; column += 2) {
      let [red, green, blue] = [0, 0, 0]
      for (let corner = 0; corner < 4; corner++) {
        const at = (row + (corner >> 1)) * width + column + (corner & 1)
        const [r, g, b] = [rgb[at * 3] as number, rgb[at * 3 + 1] as number, rgb[at * 3 + 2] as number]
        data[at] = (r * 11966 + g * 40254 + b * 4064 + 1081328) >> 16
        red += r
        green += g
        blue += b
      }
      data[half] = (blue * 28784 - red * 6596 - green * 22188 + 33684992) >> 18
      data[half + pixels / 4] = (red * 28784 - green * 26145 - blue * 2639 + 33684992) >> 18
      half++
    }
  }
  return { width, height, data }
}

/** Copies a layer into a frame at `left`, `top`, without its first `skipped` columns. All numbers are even. */
export function copyInto(frame: Layer, layer: Layer, left: number, top: number, skipped = 0): void {
  const [pixels, layerPixels] = [frame.width * frame.height, layer.width * layer.height]
  for (const [plane, half] of [
    [0, 1],
    [1, 2],
    [1.25, 2],
  ] as const) {
    const width = Math.min(layer.width - skipped, frame.width - left) / half
    for (let row = 0; row < layer.height / half; row++) {
      const from = plane * layerPixels + (row * layer.width + skipped) / half
      const to = plane * pixels + ((top / half + row) * frame.width + left) / half
      frame.data.set(layer.data.subarray(from, from + width), to)
    }
  }
}
