// Draws one picture: the scene, the reference images and the caption, in that order.
import type { Sharp } from 'sharp'
import { raceAbort } from '../host/abort.js'
import type { RenderedFile, RenderJob } from '../service/engines/engine.js'
import { layGrain } from './grain.js'
import { drawCaption, type Lettering, loadLettering } from './lettering/caption.js'
import { backdropOf, openReferences, type ReferenceImage } from './references/open-references.js'
import { layPrints } from './references/prints.js'
import type { ImageRequest } from './render-request.js'
import { composeScene, type Scene } from './scenery/scene.js'
import { type Setting, settingFor } from './scenery/scene-setting.js'
import type { Framing } from './scenery/stage.js'
import { pixels, stageSvg } from './scenery/svg.js'
import { imageSize, type Size } from './sizes.js'
import { writeOutput } from './write-output.js'

const NAME = 'picture.png'
/** Out of 255; enough to hide banding in a night sky. */
const GRAIN = 3
const FRAMINGS = { close: 'close', wide: 'wide', aerial: 'wide', none: 'middle' } as const

export async function renderImage(request: ImageRequest, job: RenderJob): Promise<RenderedFile> {
  const size = imageSize(request)
  const setting = settingFor(request.prompt, job.run?.id)
  const framing: Framing = FRAMINGS[setting.reading.view ?? 'none']
  const lettering = await loadLettering()
  const references = await raceAbort(openReferences(job.references, size), job.signal)
  // Prints would half hide the actors, so they are laid on the place alone.
  const cast = references.length > 0 ? [] : setting.actors
  const scene = composeScene({ ...setting, actors: cast }, { size, framing, number: 0 })
  job.onProgress?.(0.2)

  const png = await raceAbort(paint(size, scene, references, setting, lettering), job.signal)
  job.onProgress?.(0.95)
  await writeOutput(job.folder, NAME, [png], job.signal)
  job.onProgress?.(1)
  return { name: NAME, contentType: 'image/png' }
}

async function paint(
  size: Size,
  scene: Scene,
  references: readonly ReferenceImage[],
  { palette, prompt }: Setting,
  lettering: Lettering,
): Promise<Buffer> {
  const sharp = await pixels()
  const only = backdropOf(references, size)
  const words = { prompt, label: '', isOverPicture: only !== undefined }
  const caption = drawCaption(scene, lettering, palette, words)
  // A single reference fills the frame (image editing).
  const ground = stageSvg(size, scene, scene.planes.map(({ drawing }) => drawing).join(''))
  // A photograph needs no grain.
  const base: Sharp =
    only === undefined ? await grained(ground, size) : sharp(await only(size.width, size.height))
  const prints =
    only === undefined && references.length > 0
      ? await layPrints(references, size, palette, lettering.label)
      : []
  return base
    .composite([...prints, { input: stageSvg(size, scene, caption), left: 0, top: 0 }])
    .removeAlpha()
    .png({ compressionLevel: 3 })
    .toBuffer()
}

async function grained(drawing: Buffer, size: Size): Promise<Sharp> {
  const sharp = await pixels()
  const bytes = await sharp(drawing).removeAlpha().raw().toBuffer()
  layGrain(bytes, size.width, 3, 3, GRAIN)
  return sharp(bytes, { raw: { ...size, channels: 3 } })
}
