// Renders a film. Draws the layers of each shot once, while the frames of the previous shot are composed and passed to
// the encoder in another thread or process. Three frame buffers are reused, so memory use grows only by the encoded
// film (1 to 8 MB).
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { OverlayOptions } from 'sharp'
import { raceAbort } from '../../host/abort.js'
import type { RenderedFile, RenderJob } from '../../service/engines/engine.js'
import { writeOutput } from '../files.js'
import { drawCaption, type Lettering, loadLettering } from '../lettering/caption.js'
import { backdropOf, layPrints, openReferences, type ReferenceImage } from '../references.js'
import { type Size, type VideoRequest, videoSize } from '../render-request.js'
import { composeScene } from '../scenery/scene.js'
import { type Setting, settingFor } from '../scenery/scene-setting.js'
import { type Framing, pixels, stageSvg } from '../scenery/stage.js'
import { drawSubjectCard } from '../scenery/subject-card.js'
import { composeFrame, dissolve, type FilmLayer, type Frame, layerFromRgba } from './compose.js'
import { type Encoder, EncoderFailed, openWasmEncoder } from './encoder.js'
import { findFfmpeg, openFfmpeg } from './ffmpeg-encoder.js'
import { fastStart, type Track } from './mp4.js'
import { FRAMES_PER_SECOND, planShots, type Shot, stageSize, type Window, windowOn } from './shots.js'

const NAME = 'film.mp4'
const WHOLE: Window = { left: 0, top: 0, width: 1, height: 1 }
const DISSOLVE_FRAMES = 12

/** `searchPath` lists the folders that may contain ffmpeg, in the format of PATH. */
export async function renderVideo(
  request: VideoRequest,
  job: RenderJob,
  searchPath: string | undefined,
): Promise<RenderedFile> {
  const film = await prepareFilm(request, job)
  const track = await encode(film, job, searchPath)
  await writeOutput(job.folder, NAME, fastStart(track, film.size, FRAMES_PER_SECOND), job.signal)
  job.onProgress?.(1)
  return { name: NAME, contentType: 'video/mp4' }
}

export async function prepareFilm(request: VideoRequest, job: RenderJob): Promise<Film> {
  const { prompt, seconds } = request
  const size = videoSize(request)
  const references = await raceAbort(openReferences(job.references, closestSize(size)), job.signal)
  const setting = settingFor(prompt, job.run?.id)
  const shots = planShots(setting.seed, seconds, references.length)
  const lettering = await loadLettering()
  return { setting, size, lettering, references, shots }
}

/**
 * Encodes with ffmpeg if it is installed and works. Otherwise starts again at the first frame with the bundled encoder.
 */
async function encode(film: Film, job: RenderJob, searchPath: string | undefined): Promise<Track> {
  const monotonicJob = withMonotonicProgress(job)
  const program = findFfmpeg(searchPath)
  if (program !== undefined) {
    try {
      return await shootWith(openFfmpeg(program, film.size), film, monotonicJob)
    } catch (error) {
      if (!(error instanceof EncoderFailed)) throw error
    }
  }
  return await shootWith(openWasmEncoder(film.size), film, monotonicJob)
}

/** Prevents the reported progress from decreasing when a second encoder starts again at 0. */
function withMonotonicProgress(job: RenderJob): RenderJob {
  let furthest = 0
  const onProgress = (fraction: number) => {
    if (fraction < furthest) return
    furthest = fraction
    job.onProgress?.(fraction)
  }
  return { ...job, onProgress }
}

async function shootWith(encoder: Encoder, film: Film, job: RenderJob): Promise<Track> {
  try {
    await raceAbort(shoot(film, encoder, job), job.signal)
    const track = await raceAbort(encoder.finish(), job.signal)
    const frames = film.shots.reduce((sum, shot) => sum + shot.frames, 0)
    if (track.sizes.length !== frames)
      throw new EncoderFailed(`${track.sizes.length} of ${frames} frames came out`)
    return track
  } finally {
    encoder.end()
  }
}

/** Composes all frames, each into a free buffer of the encoder. */
export async function shoot(
  film: Film,
  encoder: Pick<Encoder, 'free' | 'add'>,
  job: RenderJob,
): Promise<void> {
  const { shots, size } = film
  const total = shots.reduce((sum, shot) => sum + shot.frames, 0)
  const previousFrame = new Uint8Array((size.width * size.height * 3) / 2)
  let done = 0
  const stage = (shot: Shot | undefined, atOnce: number) =>
    beginLayers(film, shot, { atOnce, signal: job.signal })
  // Draw two layers at once for the first shot only. Later layers are drawn during composing, and would slow it down.
  let staging = stage(shots[0], 2)
  for (const [index, shot] of shots.entries()) {
    const layers = await staging
    staging = stage(shots[index + 1], 1)
    for (let at = 0; at < shot.frames; at++) {
      const frame = await encoder.free()
      job.signal.throwIfAborted()
      drawFrame(frame, previousFrame, layers, size, shot, at)
      if (at === shot.frames - 1) previousFrame.set(frame)
      encoder.add(frame)
      job.onProgress?.((++done / total) * 0.99)
      // Yield once per frame, so that messages and aborts are handled.
      await nextTurn()
    }
  }
}

/**
 * Starts drawing the layers of a shot. The caller awaits the promise later, so a rejection must not count as unhandled.
 */
function beginLayers(
  film: Film,
  shot: Shot | undefined,
  options: LayerOptions,
): Promise<readonly ShotLayer[]> {
  const layers = shot === undefined ? Promise.resolve([]) : drawShotLayers(film, shot, options)
  layers.catch(() => {})
  return layers
}

function drawFrame(
  frame: Frame,
  previousFrame: Frame,
  layers: readonly ShotLayer[],
  size: Size,
  shot: Shot,
  at: number,
): void {
  const progress = at / (shot.frames - 1)
  const views = layers.map(({ layer, depth }) => ({
    layer,
    window: depth === undefined ? WHOLE : windowOn(size, shot.movement, depth, progress),
  }))
  composeFrame(frame, size, views)
  if (shot.entrance === 'dissolve' && at < DISSOLVE_FRAMES) dissolve(frame, previousFrame, previousShare(at))
}

/** Share of the previous shot in 1/256, eased at both ends. */
function previousShare(at: number): number {
  const share = 1 - (at + 1) / (DISSOLVE_FRAMES + 1)
  return Math.round(255 * share * share * (3 - 2 * share))
}

export interface Film {
  readonly setting: Setting
  readonly size: Size
  readonly lettering: Lettering
  readonly references: readonly ReferenceImage[]
  readonly shots: readonly Shot[]
}

/** Share of the stage at its left and right sides that the camera may cut off. */
const PRINT_SIDE = 0.12
const CLOSENESS: Readonly<Record<Framing, number>> = { wide: 1, middle: 1.35, close: 1.9 }

/** Size of a reference in the closest shot, if the reference fills a film of `size`. */
export function closestSize(size: Size): Size {
  const stage = stageSize(size)
  return { width: stage.width * CLOSENESS.close, height: stage.height * CLOSENESS.close }
}

/** The furthest and the nearest plane are out of focus, so they are drawn at half the size: a quarter of the work. */
const SOFT: ReadonlySet<string> = new Set(['sky', 'front'])
const halfOf = ({ width, height }: Size): Size => ({ width: width / 2, height: height / 2 })

/** A layer, and how far it moves with the camera. `depth` is undefined for the caption, which does not move. */
export interface ShotLayer {
  readonly layer: FilmLayer
  readonly depth: number | undefined
}

export interface LayerOptions {
  /** Number of layers drawn at once. Drawing a layer takes up to 30 MiB. */
  readonly atOnce: number
  readonly signal: AbortSignal
}

/** A layer before it is drawn. */
interface Painting {
  readonly size: Size
  readonly depth: number | undefined
  draw(): Promise<readonly OverlayOptions[]>
}

/** Returns the layers of a shot, the furthest first. At 1080p, five layers use about 8 MiB each. */
export async function drawShotLayers(
  film: Film,
  shot: Shot,
  { atOnce, signal }: LayerOptions,
): Promise<readonly ShotLayer[]> {
  const paintings = paintingsOf(film, shot)
  const layers: ShotLayer[] = []
  const turns = paintings.entries()
  async function takeTurns(): Promise<void> {
    for (const [at, { size, depth, draw }] of turns) {
      signal.throwIfAborted()
      layers[at] = { layer: layerFromRgba(await paint(size, await draw()), size), depth }
    }
  }
  await Promise.all(Array.from({ length: atOnce }, takeTurns))
  return layers
}

function paintingsOf(film: Film, shot: Shot): readonly Painting[] {
  const { setting, size, lettering } = film
  const { palette, prompt } = setting
  const stage = stageSize(size)
  const shotReferences = shot.references.flatMap((index) => film.references[index] ?? [])
  const cast = shotReferences.length > 0 ? [] : setting.actors
  const scene = composeScene(
    { ...setting, actors: cast },
    { size, framing: shot.framing, number: shot.number },
  )
  const backdrop = backdropOf(shotReferences, size)
  const label = `${shot.number} / ${film.shots.length}`
  const words = { prompt, label, isOverPicture: backdrop !== undefined }
  const caption: Painting = {
    size,
    depth: undefined,
    draw: async () => [{ input: stageSvg(size, scene, drawCaption(scene, lettering, palette, words)) }],
  }
  if (backdrop !== undefined) {
    // A single reference fills the shot (image to video), cropped to the framing of the shot.
    const draw = async () => [{ input: await backdrop(stage.width, stage.height, CLOSENESS[shot.framing]) }]
    return [{ size: stage, depth: 0.35, draw }, caption]
  }
  const planes = scene.planes.map(({ name, drawing, depth }): Painting => {
    const room = SOFT.has(name) ? halfOf(stage) : stage
    return { size: room, depth, draw: async () => [{ input: stageSvg(room, scene, drawing) }] }
  })
  const prints: Painting = {
    size: stage,
    depth: 0.5,
    draw: () => layPrints(shotReferences, stage, palette, lettering.label, PRINT_SIDE),
  }
  const drawing = drawSubjectCard(scene, lettering.text, setting)
  const card: Painting = {
    size: stage,
    depth: 0.3,
    draw: async () => [{ input: stageSvg(stage, scene, drawing) }],
  }
  const front = shotReferences.length > 0 ? [prints] : drawing === '' ? [] : [card]
  return [...planes, ...front, caption]
}

/** Draws onto a canvas of `size` as RGBA. A single drawing already has this size and needs no empty canvas. */
async function paint(size: Size, drawings: readonly OverlayOptions[]): Promise<Buffer> {
  const sharp = await pixels()
  const onlyInput = drawings.length === 1 ? drawings[0]?.input : undefined
  const canvas = Buffer.isBuffer(onlyInput)
    ? sharp(onlyInput).ensureAlpha()
    : sharp({ create: { ...size, channels: 4, background: { r: 0, g: 0, b: 0, alpha: 0 } } }).composite([
        ...drawings,
      ])
  return await canvas.raw().toBuffer()
}
