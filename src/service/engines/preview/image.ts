// One picture: the scene, the reference images, the lettering, in that order, at the exact size.
import type { RenderedFile, RenderJob } from '../engine.js'
import { orAborted } from './interrupt.js'
import { drawCaption, type Lettering, loadLettering } from './lettering/caption.js'
import { type Palette, paletteFor } from './palette.js'
import { placeFile } from './place.js'
import { randomFrom } from './random.js'
import { layPrints } from './references/prints.js'
import { openReferences, type Reference } from './references/reference.js'
import type { ImageRequest } from './request.js'
import { composeScene, type Scene } from './scenery/scene.js'
import { pixels, stageSvg } from './scenery/svg.js'
import { imageSize, type Size } from './sizes.js'
import { readPrompt } from './words.js'

const NAME = 'picture.png'

export async function renderImage(request: ImageRequest, job: RenderJob): Promise<RenderedFile> {
  const size = imageSize(request)
  const reading = readPrompt(request.prompt)
  const palette = paletteFor(reading, randomFrom(request.prompt))
  const scene = composeScene(
    { seed: request.prompt, reading, palette },
    { size, framing: 'middle', number: 0 },
  )
  const lettering = await loadLettering()
  const references = await orAborted(openReferences(job.references), job.signal)
  job.onProgress?.(0.2)

  const png = await orAborted(paint(size, scene, references, palette, lettering, request.prompt), job.signal)
  job.onProgress?.(0.95)
  await placeFile(job.folder, NAME, [png], job.signal)
  job.onProgress?.(1)
  return { name: NAME, contentType: 'image/png' }
}

async function paint(
  size: Size,
  scene: Scene,
  references: readonly Reference[],
  palette: Palette,
  lettering: Lettering,
  prompt: string,
): Promise<Buffer> {
  const sharp = await pixels()
  const caption = drawCaption(scene, lettering, palette, { prompt, label: '' })
  const only = references.length === 1 ? references[0]?.fill : undefined
  // A single reference is the picture itself (image editing): the scene then lends only its nearest plane.
  const planes = only === undefined ? scene.planes : scene.planes.filter(({ name }) => name === 'near')
  const ground = stageSvg(size, scene, planes.map(({ drawing }) => drawing).join(''))
  const layers = [
    ...(only === undefined ? [] : [{ input: await only(size.width, size.height), left: 0, top: 0 }]),
    { input: ground, left: 0, top: 0 },
    ...(only === undefined && references.length > 0
      ? await layPrints(references, size, palette, lettering.label)
      : []),
    { input: stageSvg(size, scene, caption), left: 0, top: 0 },
  ]
  return sharp({ create: { ...size, channels: 3, background: '#000' } })
    .composite(layers)
    .removeAlpha()
    .png({ compressionLevel: 6 })
    .toBuffer()
}
