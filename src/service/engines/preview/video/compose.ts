// One frame from the layers of a shot. Plain loops over bytes of I420: sharp would need RGBA frames and a conversion of
// each, 8 MB of traffic per 1080p frame. For each tile drawing begins at the uppermost layer that covers it wholly, so
// that a hidden sky costs nothing.
import type { Window } from './camera.js'
import { type Channel, type Layer, OPAQUE } from './layer.js'
import { Sampler } from './sampler.js'

// Wide, so that the loops within have some length; low, because a horizon is.
const TILE_WIDTH = 64
const TILE_HEIGHT = 16

/** A layer and the part of it that fills the frame. */
export interface View {
  readonly layer: Layer
  readonly window: Window
}

/** The planes of one frame: width x height bytes of luma, then U and V at a quarter of that each. */
export type Frame = Uint8Array

/** Draws the views, the furthest first; the first one has to cover everything. `frame` is overwritten. */
export function composeFrame(frame: Frame, width: number, height: number, views: readonly View[]): void {
  const pixels = width * height
  const quarter = pixels / 4
  const luma = [frame.subarray(0, pixels)]
  const chroma = [
    frame.subarray(pixels, pixels + quarter),
    frame.subarray(pixels + quarter, pixels + 2 * quarter),
  ]
  composeChannel(luma, width, height, views, (layer) => layer.luma)
  composeChannel(chroma, width / 2, height / 2, views, (layer) => layer.chroma)
}

function composeChannel(
  targets: readonly Uint8Array[],
  width: number,
  height: number,
  views: readonly View[],
  channelOf: (layer: Layer) => Channel,
): void {
  const samplers = views.map(({ layer, window }) => new Sampler(channelOf(layer), window, width, height))
  const coverages = new Uint8Array(samplers.length)
  for (let top = 0; top < height; top += TILE_HEIGHT) {
    for (let left = 0; left < width; left += TILE_WIDTH) {
      const right = Math.min(left + TILE_WIDTH, width)
      const bottom = Math.min(top + TILE_HEIGHT, height)
      const tile = { left, top, right, bottom }
      let index = samplers.length
      do {
        index--
        coverages[index] = samplers[index]?.coverage(tile) ?? 0
      } while (index > 0 && coverages[index] !== OPAQUE)
      for (; index < samplers.length; index++)
        samplers[index]?.draw(tile, coverages[index] as number, targets)
    }
  }
}
