// Grain: 8 bits show banding in smooth skies, and a little noise hides it. The same in all three channels, so that it
// changes brightness and not colour.
import { randomFrom } from './random.js'

const SIDE = 256

/** Noise from -`strength` to `strength`, mostly near zero, as SIDE x SIDE values that tile. */
function noise(strength: number): Int8Array {
  const random = randomFrom('grain')
  return Int8Array.from({ length: SIDE * SIDE }, () => Math.round((random() + random() - 1) * strength))
}

const tiles = new Map<number, Int8Array>()

/** Adds grain in place to the first `painted` of the `channels` bytes of each pixel. */
export function layGrain(
  pixels: Uint8Array,
  width: number,
  channels: number,
  painted: number,
  strength: number,
): void {
  const tile = tiles.get(strength) ?? noise(strength)
  tiles.set(strength, tile)
  const height = pixels.length / (width * channels)
  for (let row = 0; row < height; row++) {
    const line = (row % SIDE) * SIDE
    for (let column = 0; column < width; column++) {
      const grain = tile[line + (column % SIDE)] as number
      if (grain === 0) continue
      const at = (row * width + column) * channels
      for (let channel = at; channel < at + painted; channel++) {
        const value = (pixels[channel] as number) + grain
        pixels[channel] = value < 0 ? 0 : value > 255 ? 255 : value
      }
    }
  }
}
