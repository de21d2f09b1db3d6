// Renders a film. Each shot is one flat stage, drawn wider than the frame while the frames of the previous shot are
// encoded; the camera moves over it sideways by whole pixels. Stages and overlays become YUV once, by sharp: the encoder
// would take 9 ms a frame for it at 720p. Memory use grows only by the encoded film (1 to 8 MB).
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
    layout.overlays.map(async (print) => ({ ...print, planes: await planesOf(sharp(print.input)) })),
  )
  const shots = planShots(String(input.duration), size)
  const draw = async (shot: Shot | undefined) => shot && planesOf(await drawStage(layout, shot))
  const encoder = await openEncoder(size)
  const frame = SHARES.map((share) => ({
    ...partOf(size, share),
    data: new Uint8Array((size.width * size.height) / share ** 2),
  }))
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
      for (const { planes, left, top } of overlays) copyInto(frame, planes, left, top)
      encoder.add(Buffer.concat(frame.map(({ data }) => data)))
      onProgress?.((++done / total) * 0.99)
      // Yield once per frame, so that messages and aborts are handled.
      await nextTurn()
    }
  }
  return writeOutput(job, 'film.mp4', 'video/mp4', encoder.finish(layout.title))
}

/** A picture of one byte a pixel. Of the three planes of YUV, the last two have half the width and height. */
export interface Plane extends Size {
  readonly data: Uint8Array
}

/** Y, U and V of BT.601 from red, green, blue and alpha, which is 255: it adds the offsets, and half for rounding. */
const YUV = [
  [0.257, 0.504, 0.098, 16.5 / 255],
  [-0.148, -0.291, 0.439, 128.5 / 255],
  [0.439, -0.368, -0.071, 128.5 / 255],
  [0, 0, 0, 1],
]
/** How much smaller each plane is. */
const SHARES = [1, 2, 2]
const partOf = ({ width, height }: Size, share: number): Size => ({
  width: width / share,
  height: height / share,
})
const CHANNELS = ['red', 'green', 'blue'] as const

export async function planesOf(picture: Sharp): Promise<readonly Plane[]> {
  const { data, info } = await picture.ensureAlpha().raw().toBuffer({ resolveWithObject: true })
  const sharp = await pixels()
  return Promise.all(
    CHANNELS.map(async (channel, at) => {
      const share = SHARES[at] ?? 1
      const size = partOf(info, share)
      const small = sharp(data, { raw: info }).resize({ ...size, kernel: 'linear' })
      const plane = small.recomb(YUV as never).extractChannel(channel)
      return { ...size, data: await plane.raw().toBuffer() }
    }),
  )
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
      framing: FRAMINGS[index] ?? 'wide',
      frames,
      step: index % 2 === 0 ? step : -step,
      way: step * (frames - 1),
    }
  })
}

/** Returns the first column of the stage that a frame shows. */
export const columnAt = ({ step, way }: Shot, at: number): number => (step > 0 ? step * at : way + step * at)

/** Copies an opaque picture into a frame at `left`, `top`, without its first `skipped` columns: all even. */
export function copyInto(
  frame: readonly Plane[],
  picture: readonly Plane[],
  left: number,
  top: number,
  skipped = 0,
): void {
  for (const [at, share] of SHARES.entries()) {
    const [to, from] = [frame[at], picture[at]]
    for (let row = 0; to && from && row < from.height; row++) {
      const start = row * from.width + skipped / share
      const end = Math.min(start + to.width - left / share, (row + 1) * from.width)
      to.data.set(from.data.subarray(start, end), (top / share + row) * to.width + left / share)
    }
  }
}
