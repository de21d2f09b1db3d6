// Renders a film. Each shot is one flat stage, drawn wider than the frame while the frames of the previous shot are
// encoded; the camera moves over it sideways by whole pixels. Memory use grows only by the encoded film (1 to 8 MB).
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { RenderedFile, RenderJob } from '../../service/engines/engine.js'
import { writeOutput } from '../files.js'
import { drawBand, drawStage, type Layout, layOut } from '../picture.js'
import { randomFrom } from '../random.js'
import { type Size, type VideoRequest, videoSize } from '../render-request.js'
import { settingFor } from '../scenery/scene.js'
import { type Overlay, pixels, type View } from '../scenery/stage.js'
import { type Encoder, FRAMES_PER_SECOND, openEncoder } from './encoder.js'
import { copyInto, type Layer, layerFromRgb } from './frames.js'
import { fastStart, type Track } from './mp4.js'

export async function renderVideo(request: VideoRequest, job: RenderJob): Promise<RenderedFile> {
  const size = videoSize(request)
  const setting = settingFor(request.prompt, job.run?.id)
  const layout = await layOut(setting, size, job.references)
  const shots = planShots(setting.seed, request.seconds, size)
  const track = await encode(layout, shots, job)
  return writeOutput(job, 'film.mp4', 'video/mp4', fastStart(track, size, FRAMES_PER_SECOND))
}

async function encode(layout: Layout, shots: readonly Shot[], job: RenderJob): Promise<Track> {
  const encoder = await openEncoder(layout.size)
  await shoot(layout, shots, encoder, job)
  const track = encoder.finish()
  const frames = shots.reduce((sum, shot) => sum + shot.frames, 0)
  if (track.sizes.length !== frames)
    throw new Error(`the encoder wrote ${track.sizes.length} of ${frames} frames`)
  return track
}

/** Composes and encodes all frames. */
async function shoot(
  layout: Layout,
  shots: readonly Shot[],
  encoder: Encoder,
  { signal, onProgress }: RenderJob,
): Promise<void> {
  const { size } = layout
  const frame = { ...size, data: new Uint8Array(size.width * size.height * 1.5) }
  const total = shots.reduce((sum, shot) => sum + shot.frames, 0)
  const draw = (shot: Shot | undefined): Promise<Layers> | undefined => {
    const layers = shot && drawLayers(layout, shot, shots.length)
    // The layers of the next shot are awaited later, so a rejection must not count as unhandled.
    layers?.catch(() => {})
    return layers
  }
  let done = 0
  let next = draw(shots[0])
  for (const [index, shot] of shots.entries()) {
    const { stage, overlays } = (await next) as Layers
    next = draw(shots[index + 1])
    for (let at = 0; at < shot.frames; at++) {
      signal.throwIfAborted()
      copyInto(frame, stage, 0, 0, columnAt(shot, at))
      for (const { layer, left, top } of overlays) copyInto(frame, layer, left, top)
      encoder.add(frame.data)
      onProgress?.((++done / total) * 0.99)
      // Yield once per frame, so that messages and aborts are handled.
      await nextTurn()
    }
  }
}

interface Layers {
  readonly stage: Layer
  readonly overlays: readonly { readonly layer: Layer; readonly left: number; readonly top: number }[]
}

async function drawLayers(layout: Layout, shot: Shot, shots: number): Promise<Layers> {
  const sharp = await pixels()
  const stage = await (await drawStage(layout, shot)).removeAlpha().raw().toBuffer()
  const overlays = [await drawBand(layout, `${shot.number} / ${shots}`), ...layout.overlays]
  const layerOf = async (overlay: Overlay) => {
    const rgb = await sharp(overlay.input).removeAlpha().raw().toBuffer()
    return { ...overlay, layer: layerFromRgb(rgb, overlay) }
  }
  return {
    stage: layerFromRgb(stage, { width: layout.size.width + shot.way, height: layout.stageHeight }),
    overlays: await Promise.all(overlays.map(layerOf)),
  }
}

export interface Shot {
  /** Number of the shot, counted from 1. */
  readonly number: number
  readonly frames: number
  readonly framing: View['framing']
  /** Pixels from one frame to the next: even, because a colour difference covers two pixels. Negative to the left. */
  readonly step: number
  /** Pixels from the first frame to the last. */
  readonly way: number
}

const FRAMINGS = ['wide', 'middle', 'close', 'wide'] as const
// Lengths of shots in whole seconds: the encoder sets a key frame every second, so every cut is at a key frame.
const LENGTHS = { 5: [2, 1, 2], 10: [3, 2, 2, 3] } as const

/** Plans three shots (120 frames) for 5 s, and four shots (240 frames) for 10 s. */
export function planShots(seed: string, seconds: 5 | 10, size: Size): readonly Shot[] {
  const step = Math.min(size.width, size.height) > 1000 ? 4 : 2
  const turn = randomFrom(`${seed}\nshots`)() < 0.5 ? 0 : 1
  return LENGTHS[seconds].map((length, index) => {
    const frames = length * FRAMES_PER_SECOND
    return {
      number: index + 1,
      frames,
      framing: FRAMINGS[index] ?? 'wide',
      step: (index + turn) % 2 === 0 ? step : -step,
      way: step * (frames - 1),
    }
  })
}

/** Returns the first column of the stage that a frame shows. */
export const columnAt = ({ step, way }: Shot, at: number): number => (step > 0 ? step * at : way + step * at)
