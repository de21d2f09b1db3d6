// Renders a film. The layers of a shot are drawn once, while the frames of the shot before are composed and passed to the
// encoder in its own thread or process. Three frame buffers are reused; only the encoded film (1 to 8 MB) grows.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { raceAbort } from '../../host/abort.js'
import type { RenderedFile, RenderJob } from '../../service/engines/engine.js'
import { loadLettering } from '../lettering/caption.js'
import { openReferences } from '../references/open-references.js'
import type { VideoRequest } from '../render-request.js'
import { settingFor } from '../scenery/scene-setting.js'
import { type Size, videoSize } from '../sizes.js'
import { writeOutput } from '../write-output.js'
import { type Window, windowOn } from './camera.js'
import { composeFrame, dissolve, type Frame } from './compose.js'
import { type Encoder, EncoderFailed } from './encoder.js'
import { findFfmpeg, openFfmpeg } from './ffmpeg-encoder.js'
import type { Track } from './mp4/encoder-mp4.js'
import { fastStart } from './mp4/faststart.js'
import { closestSize, drawShotLayers, type Film, type LayerOptions, type ShotLayer } from './shot-layers.js'
import { FRAMES_PER_SECOND, planShots, type Shot } from './shots.js'
import { openWasmEncoder } from './wasm-encoder.js'

const NAME = 'film.mp4'
const WHOLE: Window = { left: 0, top: 0, width: 1, height: 1 }
const DISSOLVE_FRAMES = 12

/** `searchPath` has the folders to find ffmpeg in, as in PATH. */
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

/** With ffmpeg if it is found and works, otherwise from the first frame on with the bundled encoder. */
async function encode(film: Film, job: RenderJob, searchPath: string | undefined): Promise<Track> {
  const told = neverGoingBack(job)
  const program = findFfmpeg(searchPath)
  if (program !== undefined) {
    try {
      return await shootWith(openFfmpeg(program, film.size), film, told)
    } catch (error) {
      if (!(error instanceof EncoderFailed)) throw error
    }
  }
  return await shootWith(openWasmEncoder(film.size), film, told)
}

function neverGoingBack(job: RenderJob): RenderJob {
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

/** Composes every frame into a free buffer of the encoder's. */
export async function shoot(
  film: Film,
  encoder: Pick<Encoder, 'free' | 'add'>,
  job: RenderJob,
): Promise<void> {
  const { shots, size } = film
  const total = shots.reduce((sum, shot) => sum + shot.frames, 0)
  const held = new Uint8Array((size.width * size.height * 3) / 2)
  let done = 0
  const stage = (shot: Shot | undefined, atOnce: number) =>
    beginLayers(film, shot, { atOnce, signal: job.signal })
  // Two layers at once for the first shot; later ones are drawn beside the composing, which they would slow down.
  let staging = stage(shots[0], 2)
  for (const [index, shot] of shots.entries()) {
    const layers = await staging
    staging = stage(shots[index + 1], 1)
    for (let at = 0; at < shot.frames; at++) {
      const frame = await encoder.free()
      job.signal.throwIfAborted()
      drawFrame(frame, held, layers, size, shot, at)
      if (at === shot.frames - 1) held.set(frame)
      encoder.add(frame)
      job.onProgress?.((++done / total) * 0.99)
      // Yield once per frame, so that messages and aborts are handled.
      await nextTurn()
    }
  }
}

/** Starts drawing the layers of a shot, to be awaited later. */
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
  held: Frame,
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
  if (shot.entrance === 'dissolve' && at < DISSOLVE_FRAMES) dissolve(frame, held, meltShare(at))
}

/** The share of the shot before, of 256, eased at both ends. */
function meltShare(at: number): number {
  const share = 1 - (at + 1) / (DISSOLVE_FRAMES + 1)
  return Math.round(255 * share * share * (3 - 2 * share))
}
