// Renders a film. Each shot is one flat stage, drawn wider than the frame while the frames of the previous shot are
// encoded; the camera moves over it sideways by whole pixels. Memory use grows only by the encoded film (1 to 8 MB).
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Sharp } from 'sharp'
import type { RenderedFile, RenderJob } from '../service/engines/engine.js'
import { FRAMES_PER_SECOND, openEncoder } from './encoder.js'
import { pixels, writeOutput } from './files.js'
import { drawStage, layOut, type StageView } from './picture.js'
import { type Size, videoSize } from './size.js'

export async function renderVideo(job: RenderJob): Promise<RenderedFile> {
  const { input, signal, onProgress } = job
  const size = videoSize(input)
  const layout = await layOut(job, size)
  const sharp = await pixels()
  const overlays = await Promise.all(
    layout.overlays.map(async ({ input: print, left, top }) => ({
      left,
      top,
      layer: await layerOf(sharp(print)),
    })),
  )
  const shots = planShots(String(input.duration), size)
  const draw = async (shot: Shot | undefined) => shot && layerOf(await drawStage(layout, shot))
  const encoder = await openEncoder(size)
  const frame = { ...size, data: new Uint8Array(size.width * size.height * 4) }
  const total = shots.reduce((sum, shot) => sum + shot.frames, 0)
  let done = 0
  let next = draw(shots[0])
  for (const [index, shot] of shots.entries()) {
    const stage = await next
    next = draw(shots[index + 1])
    // Awaited later, so a rejection must not count as unhandled.
    next.catch(() => {})
    for (let at = 0; stage !== undefined && at < shot.frames; at++) {
      signal.throwIfAborted()
      copyInto(frame, stage, 0, 0, columnAt(shot, at))
      for (const { layer, left, top } of overlays) copyInto(frame, layer, left, top)
      encoder.add(frame.data)
      onProgress?.((++done / total) * 0.99)
      // Yield once per frame, so that messages and aborts are handled.
      await nextTurn()
    }
  }
  return writeOutput(job, 'film.mp4', 'video/mp4', encoder.finish(layout.title))
}

/** A picture in RGBA. */
export interface Layer extends Size {
  readonly data: Uint8Array
}

async function layerOf(picture: Sharp): Promise<Layer> {
  const { data, info } = await picture.ensureAlpha().raw().toBuffer({ resolveWithObject: true })
  return { data, width: info.width, height: info.height }
}

export interface Shot extends StageView {
  readonly frames: number
  /** Pixels from one frame to the next. Negative to the left. */
  readonly step: number
}

const FRAMINGS = ['wide', 'middle', 'close', 'wide'] as const

/** Plans three shots (120 frames) for 5 s, and four shots (240 frames) for 10 s. */
export function planShots(duration: string, size: Size): readonly Shot[] {
  const step = Math.min(size.width, size.height) > 1000 ? 4 : 2
  // Whole seconds: the encoder sets a key frame every second, so every cut is at a key frame.
  const lengths = duration === '10' ? [3, 2, 2, 3] : [2, 1, 2]
  return lengths.map((seconds, index) => {
    const frames = seconds * FRAMES_PER_SECOND
    return {
      number: index + 1,
      frames,
      framing: FRAMINGS[index] ?? 'wide',
      step: index % 2 === 0 ? step : -step,
      way: step * (frames - 1),
    }
  })
}

/** Returns the first column of the stage that a frame shows. */
export const columnAt = ({ step, way }: Shot, at: number): number => (step > 0 ? step * at : way + step * at)

/** Copies an opaque picture into a frame, both in RGBA, at `left`, `top`, without its first `skipped` columns. */
export function copyInto(frame: Layer, layer: Layer, left: number, top: number, skipped = 0): void {
  const width = Math.min(layer.width - skipped, frame.width - left)
  for (let row = 0; row < layer.height; row++) {
    const from = (row * layer.width + skipped) * 4
    frame.data.set(layer.data.subarray(from, from + width * 4), ((top + row) * frame.width + left) * 4)
  }
}
