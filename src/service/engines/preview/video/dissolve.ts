// The end of one shot, held, melting into the next.
import type { Frame } from './compose.js'

export const DISSOLVE_FRAMES = 8

/** Lays `held` over `frame`; `index` counts the frames of the new shot from 0. */
export function dissolve(frame: Frame, held: Frame, index: number): void {
  const share = 256 - Math.round(((index + 1) * 256) / (DISSOLVE_FRAMES + 1))
  for (let at = 0; at < frame.length; at++) {
    const now = frame[at] as number
    frame[at] = now + ((((held[at] as number) - now) * share + 128) >> 8)
  }
}
