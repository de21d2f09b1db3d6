// Renders a film. Each shot is one flat stage, drawn wider than the frame; the camera moves over it sideways by whole
// pixels. Memory use grows only by the encoded film (1 to 8 MB).
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Sharp } from 'sharp'
import type { RenderedFile, RenderJob } from '../service/engines/engine.js'
import { FRAMES_PER_SECOND, openEncoder } from './encoder.js'
import { writeOutput } from './files.js'
import { pixels } from './open-picture.js'
import { drawStage, layOut } from './picture.js'
import { type Size, videoSize } from './size.js'

export async function renderVideo(job: RenderJob): Promise<RenderedFile> {
  const { input, signal, onProgress } = job
  const size = videoSize(input)
  const layout = await layOut(job, size)
  const sharp = await pixels()
  const overlays = await Promise.all(
    layout.overlays.map(async (overlay) => ({ ...overlay, ...(await rgbaOf(sharp(overlay.input))) })),
  )
  const shots = await Promise.all(
    planShots(input.duration, size).map(async (shot) => ({
      ...shot,
      stage: await rgbaOf(await drawStage(layout, shot, shot.way)),
    })),
  )
  const encoder = await openEncoder(size)
  const frame: Rgba = { ...size, data: new Uint8Array(size.width * size.height * 4) }
  const total = Number(input.duration) * FRAMES_PER_SECOND
  let done = 0
  for (const { stage, frames, step } of shots)
    for (let at = 0; at < frames; at++) {
      signal.throwIfAborted()
      copyInto(frame, stage, -step * at, 0)
      for (const overlay of overlays) copyInto(frame, overlay, overlay.left, overlay.top)
      encoder.add(frame.data)
      onProgress?.((++done / total) * 0.99)
      // Yield once per frame, so that messages and aborts are handled.
      await nextTurn()
    }
  return writeOutput(job, 'film.mp4', 'video/mp4', encoder.finish(layout.title))
}

/** A picture with four bytes for each pixel, in rows. */
interface Rgba extends Size {
  readonly data: Uint8Array
}

async function rgbaOf(picture: Sharp): Promise<Rgba> {
  const { data, info } = await picture.ensureAlpha().raw().toBuffer({ resolveWithObject: true })
  return { ...info, data }
}

/** Copies an opaque picture into a frame. A negative `left` shows a wider picture from there. */
export function copyInto(frame: Rgba, picture: Rgba, left: number, top: number): void {
  const shown = Math.min(frame.width, picture.width)
  for (let row = 0; row < picture.height; row++) {
    const from = row * picture.width + Math.max(0, -left)
    const to = (top + row) * frame.width + Math.max(0, left)
    frame.data.set(picture.data.subarray(from * 4, (from + shown) * 4), to * 4)
  }
}

const FRAMINGS = ['wide', 'middle', 'close', 'wide'] as const

/** Plans three shots (120 frames) for 5 s, and four shots (240 frames) for 10 s. */
export function planShots(duration: unknown, { width, height }: Size) {
  // Pixels from one frame to the next.
  const step = Math.min(width, height) > 1000 ? 4 : 2
  // Whole seconds: the encoder sets a key frame every second, so every cut is at a key frame.
  return (duration === '10' ? [3, 2, 2, 3] : [2, 1, 2]).map((seconds, index) => {
    const frames = seconds * FRAMES_PER_SECOND
    return { number: index + 1, framing: FRAMINGS[index] ?? 'wide', frames, step, way: step * (frames - 1) }
  })
}
