// The film: shot by shot its layers are drawn once, then every frame is composed into the same buffer and handed to the
// encoder. No frame outlives the next one; what grows with length is the encoded film alone, 1 to 3 MB.
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { RenderedFile, RenderJob } from '../../engine.js'
import { orAborted } from '../interrupt.js'
import { loadLettering } from '../lettering/caption.js'
import { placeFile } from '../place.js'
import { openReferences } from '../references/reference.js'
import type { VideoRequest } from '../request.js'
import { settingFor } from '../scenery/setting.js'
import { type Size, videoSize } from '../sizes.js'
import { type Window, windowOn } from './camera.js'
import { composeFrame, type Frame, type View } from './compose.js'
import { DISSOLVE_FRAMES, dissolve } from './dissolve.js'
import { createEncoder, type Encoder } from './encoder.js'
import { fastStart } from './mp4/faststart.js'
import { readTrack } from './mp4/track.js'
import { FRAMES_PER_SECOND, planShots, type Shot } from './shots.js'
import { type Film, type StagedLayer, setStage } from './stage.js'

const NAME = 'film.mp4'
const WHOLE: Window = { left: 0, top: 0, width: 1, height: 1 }

export async function renderVideo(request: VideoRequest, job: RenderJob): Promise<RenderedFile> {
  const { prompt } = request
  const size = videoSize(request)
  const setting = settingFor(prompt)
  const references = await orAborted(openReferences(job.references), job.signal)
  const shots = planShots(prompt, request.seconds, references.length)
  const lettering = await loadLettering()
  const film: Film = { setting, size, lettering, references, shots: shots.length }

  const encoder = await createEncoder(size)
  try {
    await shoot(film, shots, encoder, job)
    const parts = fastStart(readTrack(encoder.finish()), size, FRAMES_PER_SECOND)
    await placeFile(job.folder, NAME, parts, job.signal)
  } finally {
    encoder.release()
  }
  job.onProgress?.(1)
  return { name: NAME, contentType: 'video/mp4' }
}

async function shoot(film: Film, shots: readonly Shot[], encoder: Encoder, job: RenderJob): Promise<void> {
  const { width, height } = film.size
  const frame: Frame = new Uint8Array((width * height * 3) / 2)
  const held: Frame = new Uint8Array(frame.length)
  const total = shots.reduce((sum, shot) => sum + shot.frames, 0)
  let done = 0
  for (const shot of shots) {
    const layers = await orAborted(setStage(film, shot, job.signal), job.signal)
    held.set(frame)
    for (let index = 0; index < shot.frames; index++) {
      const progress = index / (shot.frames - 1)
      composeFrame(frame, width, height, viewsOf(layers, film.size, shot, progress))
      if (shot.entrance === 'dissolve' && index < DISSOLVE_FRAMES) dissolve(frame, held, index)
      encoder.add(frame)
      job.onProgress?.((++done / total) * 0.99)
      // One turn of the event loop per frame, so that whoever hosts us hears a message, and we an abort.
      await nextTurn()
      job.signal.throwIfAborted()
    }
  }
}

function viewsOf(layers: readonly StagedLayer[], size: Size, shot: Shot, progress: number): View[] {
  return layers.map(({ layer, depth }) => ({
    layer,
    window: depth === undefined ? WHOLE : windowOn(size, shot.movement, depth, progress),
  }))
}
