// Renders a film. Each shot is one flat stage, drawn slightly larger than the frame while the frames of the previous shot
// are composed and encoded; the camera moves over it by whole pixels. Three frame buffers are reused, so memory use grows
// only by the encoded film (1 to 8 MB).
import { setImmediate as nextTurn } from 'node:timers/promises'
import { raceAbort } from '../../host/abort.js'
import type { RenderedFile, RenderJob } from '../../service/engines/engine.js'
import { writeOutput } from '../files.js'
import { drawCaption, type Lettering, loadLettering } from '../lettering/caption.js'
import { drawShot } from '../picture.js'
import { pick, randomFrom } from '../random.js'
import { openReferences, type ReferenceImage } from '../references.js'
import { type Size, type VideoRequest, videoSize } from '../render-request.js'
import { type Setting, settingFor } from '../scenery/scene.js'
import { pixels, stageSvg, type View } from '../scenery/stage.js'
import { type Encoder, FRAMES_PER_SECOND, openEncoder } from './encoder.js'
import { cutFrame, type Layer, layerFromRgba, layOver } from './frames.js'
import { fastStart, type Track } from './mp4.js'

const NAME = 'film.mp4'

interface Film {
  readonly setting: Setting
  readonly size: Size
  readonly lettering: Lettering
  readonly references: readonly ReferenceImage[]
  readonly shots: readonly Shot[]
}

export async function renderVideo(request: VideoRequest, job: RenderJob): Promise<RenderedFile> {
  const size = videoSize(request)
  const references = await raceAbort(openReferences(job.references, size), job.signal)
  const setting = settingFor(request.prompt, job.run?.id, references.length > 0)
  const shots = planShots(setting.seed, request.seconds, references.length, size)
  const film = { setting, size, lettering: await loadLettering(), references, shots }
  const track = await encode(film, job)
  await writeOutput(job.folder, NAME, fastStart(track, size, FRAMES_PER_SECOND), job.signal)
  job.onProgress?.(1)
  return { name: NAME, contentType: 'video/mp4' }
}

async function encode(film: Film, job: RenderJob): Promise<Track> {
  const encoder = openEncoder(film.size)
  try {
    await raceAbort(shoot(film, encoder, job), job.signal)
    const track = await raceAbort(encoder.finish(), job.signal)
    const frames = film.shots.reduce((sum, shot) => sum + shot.frames, 0)
    if (track.sizes.length !== frames)
      throw new Error(`the encoder wrote ${track.sizes.length} of ${frames} frames`)
    return track
  } finally {
    encoder.end()
  }
}

/** Composes all frames, each into a free buffer of the encoder. */
async function shoot(film: Film, encoder: Encoder, { signal, onProgress }: RenderJob): Promise<void> {
  const { shots, size } = film
  const total = shots.reduce((sum, shot) => sum + shot.frames, 0)
  let done = 0
  let next = drawLayers(film, shots[0])
  for (const [index, shot] of shots.entries()) {
    const { stage, caption } = await next
    signal.throwIfAborted()
    next = drawLayers(film, shots[index + 1])
    for (let at = 0; at < shot.frames; at++) {
      const frame = await encoder.free()
      signal.throwIfAborted()
      const { left, top } = windowAt(shot, at)
      cutFrame(frame, size, stage, left, top)
      layOver(frame, caption)
      encoder.add(frame)
      onProgress?.((++done / total) * 0.99)
      // Yield once per frame, so that messages and aborts are handled.
      await nextTurn()
    }
  }
}

interface Layers {
  readonly stage: Layer
  readonly caption: Layer
}

/** The caller awaits the layers of the next shot later, so a rejection must not count as unhandled. */
function drawLayers(film: Film, shot: Shot | undefined): Promise<Layers> {
  const layers = shot === undefined ? Promise.reject(new Error('no more shots')) : draw(film, shot)
  layers.catch(() => {})
  return layers
}

async function draw({ setting, size, lettering, references, shots }: Film, shot: Shot): Promise<Layers> {
  const { number, framing, stage } = shot
  const cut = { x: 1 - size.width / stage.width, y: 1 - size.height / stage.height }
  const seen = shot.references.flatMap((index) => references[index] ?? [])
  const ground = await drawShot(setting, lettering, { size: stage, framing, number, references: seen, cut })
  const unit = 1000 / Math.min(size.width, size.height)
  const frame = { width: size.width * unit, height: size.height * unit }
  const label = `${number} / ${shots.length}`
  const { drawing } = drawCaption(frame, lettering, setting.palette, setting.prompt, label)
  const caption = (await pixels())(stageSvg(size, frame, drawing))
  return {
    stage: layerFromRgba(await ground.ensureAlpha().raw().toBuffer(), stage),
    caption: layerFromRgba(await caption.ensureAlpha().raw().toBuffer(), size),
  }
}

export interface Shot {
  /** Number of the shot, counted from 1. */
  readonly number: number
  readonly frames: number
  readonly framing: View['framing']
  readonly movement: Movement
  /** Size of the stage: the frame, and the way of the camera. */
  readonly stage: Size
  /** Pixels from one frame to the next. Even, because a colour difference covers two pixels. */
  readonly step: number
  /** Indexes of the references in this shot. */
  readonly references: readonly number[]
}

type Movement = (typeof MOVEMENTS)[number]
const MOVEMENTS = ['right', 'down', 'left', 'up'] as const
const FRAMINGS: readonly View['framing'][] = ['wide', 'middle', 'close', 'middle', 'wide']
// Lengths of shots in whole seconds: the encoder sets a key frame every second, so every cut is at a key frame.
const RHYTHMS: Readonly<Record<5 | 10, readonly [string, ...string[]]>> = {
  5: ['2 1 2', '2 2 1', '1 2 2'],
  10: ['2 2 2 2 2', '3 2 1 2 2', '2 1 3 2 2', '3 2 2 3'],
}

/** Plans three shots (120 frames) for 5 s, and four or five shots (240 frames) for 10 s. */
export function planShots(seed: string, seconds: 5 | 10, references: number, size: Size): readonly Shot[] {
  const random = randomFrom(`${seed}\nshots`)
  const lengths = pick(random, RHYTHMS[seconds]).split(' ').map(Number)
  const first = Math.floor(random() * MOVEMENTS.length)
  const step = Math.min(size.width, size.height) > 1000 ? 4 : 2
  return lengths.map((length, index) => {
    const frames = length * FRAMES_PER_SECOND
    const movement = MOVEMENTS[(first + index) % MOVEMENTS.length] ?? 'right'
    const way = step * (frames - 1)
    const isAcross = movement === 'left' || movement === 'right'
    const stage = { width: size.width + (isAcross ? way : 0), height: size.height + (isAcross ? 0 : way) }
    const shown = referencesOf(index, lengths.length, references)
    return {
      number: index + 1,
      frames,
      framing: FRAMINGS[index] ?? 'wide',
      movement,
      stage,
      step,
      references: shown,
    }
  })
}

/** Every reference is shown, and every shot shows at least one: few references repeat, many are spread evenly. */
function referencesOf(shot: number, shots: number, references: number): readonly number[] {
  if (references === 0) return []
  if (references <= shots) return [shot % references]
  return Array.from({ length: references }, (_, index) => index).filter((index) => index % shots === shot)
}

/** Returns the position of the frame in the stage. */
export function windowAt(
  { movement, step, frames }: Shot,
  at: number,
): { readonly left: number; readonly top: number } {
  const way = step * (movement === 'right' || movement === 'down' ? at : frames - 1 - at)
  return movement === 'right' || movement === 'left' ? { left: way, top: 0 } : { left: 0, top: way }
}
