// The camera. The stage is drawn a little larger than the frame (OVERSCAN), and each plane is seen through its own window:
// near planes move more than far ones, which gives depth.
import type { Size } from '../sizes.js'

export type Movement = 'push' | 'pull' | 'left' | 'right' | 'rise'

/** How much larger than the frame, in each direction, a plane is drawn. More gives more movement and costs memory. */
const OVERSCAN = 0.16

/** Shares of the plane: 0, 0, 1, 1 would be the whole of it. */
export interface Window {
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
}

/**
 * The size at which planes are drawn for a frame of `size`. Half of the added length is even on both axes, so an axis on
 * which the camera does not move falls on whole pixels of luma and chroma.
 */
export function stageSize(size: Size): Size {
  const grown = (length: number) => length + 4 * Math.ceil((length * OVERSCAN) / 4)
  return { width: grown(size.width), height: grown(size.height) }
}

/** `depth` 0 to 1 as the planes have it, `progress` 0 to 1 through the shot. The window never leaves the plane. */
export function windowOn(size: Size, movement: Movement, depth: number, progress: number): Window {
  const stage = stageSize(size)
  // The narrowest window: one pixel of the plane for one pixel of the frame.
  const width = size.width / stage.width
  const height = size.height / stage.height
  const time = ease(progress)
  const reach = 0.25 + 0.75 * depth
  if (movement === 'push' || movement === 'pull') {
    const closeness = reach * (movement === 'push' ? time : 1 - time)
    const across = 1 - (1 - width) * closeness
    const down = 1 - (1 - height) * closeness
    return { left: (1 - across) / 2, top: (1 - down) / 2, width: across, height: down }
  }
  const away = (time - 0.5) * reach
  const left = (1 - width) * (0.5 + (movement === 'right' ? away : movement === 'left' ? -away : 0))
  const top = (1 - height) * (0.5 - (movement === 'rise' ? away : 0))
  return { left, top, width, height }
}

/** Half linear, half eased, so that the camera never stops within a shot. */
function ease(progress: number): number {
  return 0.5 * progress + 0.5 * progress * progress * (3 - 2 * progress)
}
