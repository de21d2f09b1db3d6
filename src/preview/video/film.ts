// Renders a film. Each shot is one flat stage, drawn wider than the frame while the frames of the previous shot are
// encoded; the camera moves over it sideways by whole pixels. Memory use grows only by the encoded film (1 to 8 MB).
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { RenderedFile, RenderJob } from '../../service/engines/engine.js'
import { writeOutput } from '../files.js'
import { drawStage, layOut, type StageView } from '../picture.js'
import { settingFor } from '../scenery/scene.js'
import { pixels } from '../scenery/stage.js'
import { type Size, videoSize } from '../size.js'
import { FRAMES_PER_SECOND, openEncoder } from './encoder.js'

export async function renderVideo(job: RenderJob): Promise<RenderedFile> {
  const { input, run, references, signal, onProgress } = job
  const size = videoSize(input)
  const layout = await layOut(settingFor(String(input.prompt), run?.id), size, references)
  const sharp = await pixels()
  const overlays = await Promise.all(
    layout.overlays.map(async ({ input: print, left, top, ...area }) => {
      const rgb = await sharp(print).removeAlpha().raw().toBuffer()
      return { left, top, layer: layerFromRgb(rgb, area) }
    }),
  )
  const shots = planShots(String(input.duration), size)
  const draw = async (shot: Shot | undefined) => {
    if (shot === undefined) return undefined
    const rgb = await (await drawStage(layout, shot)).raw().toBuffer()
    return layerFromRgb(rgb, { width: size.width + shot.way, height: layout.stageHeight })
  }
  const encoder = await openEncoder(size)
  const frame = { ...size, data: new Uint8Array(size.width * size.height * 1.5) }
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
  return writeOutput(job, 'film.mp4', 'video/mp4', encoder.finish())
}

export interface Shot extends StageView {
  readonly frames: number
  /** Pixels from one frame to the next: even, because a colour difference covers two pixels. Negative to the left. */
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

/** An opaque picture in I420: a byte of luma per pixel, then two colour differences at half the resolution. Even sides. */
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
  for (const plane of [0, 1, 1.25]) {
    const half = plane === 0 ? 1 : 2
    const width = Math.min(layer.width - skipped, frame.width - left) / half
    for (let row = 0; row < layer.height / half; row++) {
      const from = plane * layerPixels + (row * layer.width + skipped) / half
      const to = plane * pixels + ((top / half + row) * frame.width + left) / half
      frame.data.set(layer.data.subarray(from, from + width), to)
    }
  }
}
