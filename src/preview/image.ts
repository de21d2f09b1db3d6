// Draws one picture: the scene, then the reference images, then the caption.
import type { Sharp } from 'sharp'
import { raceAbort } from '../host/abort.js'
import type { RenderedFile, RenderJob } from '../service/engines/engine.js'
import { writeOutput } from './files.js'
import { drawCaption, type Lettering, loadLettering } from './lettering/caption.js'
import { randomFrom } from './random.js'
import { backdropOf, layPrints, openReferences, type ReferenceImage } from './references.js'
import { type ImageRequest, imageSize, type Size } from './render-request.js'
import { composeScene, type Scene } from './scenery/scene.js'
import { type Setting, settingFor } from './scenery/scene-setting.js'
import { type Framing, pixels, stageSvg } from './scenery/stage.js'
import { drawSubjectCard } from './scenery/subject-card.js'

const NAME = 'picture.png'
/** Maximum change of a channel, of 255. Enough to hide banding in a night sky. */
const GRAIN = 3
const FRAMINGS = { close: 'close', wide: 'wide', aerial: 'wide', none: 'middle' } as const

export async function renderImage(request: ImageRequest, job: RenderJob): Promise<RenderedFile> {
  const size = imageSize(request)
  const setting = settingFor(request.prompt, job.run?.id)
  const framing: Framing = FRAMINGS[setting.reading.view ?? 'none']
  const lettering = await loadLettering()
  const references = await raceAbort(openReferences(job.references, size), job.signal)
  // No actors with reference images, which would hide half of them.
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
  setting: Setting,
  lettering: Lettering,
): Promise<Buffer> {
  const sharp = await pixels()
  const { palette, prompt } = setting
  const backdrop = backdropOf(references, size)
  const words = { prompt, label: '', isOverPicture: backdrop !== undefined }
  const caption = drawCaption(scene, lettering, palette, words)
  // No card with reference images, because they show the subject.
  const card = references.length > 0 ? '' : drawSubjectCard(scene, lettering.text, setting)
  // A single reference fills the frame (image editing), and needs no grain.
  const ground = stageSvg(size, scene, scene.planes.map(({ drawing }) => drawing).join(''))
  const base: Sharp =
    backdrop === undefined ? await grained(ground, size) : sharp(await backdrop(size.width, size.height))
  const prints =
    backdrop === undefined && references.length > 0
      ? await layPrints(references, size, palette, lettering.label)
      : []
  return base
    .composite([...prints, { input: stageSvg(size, scene, card + caption), left: 0, top: 0 }])
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

const SIDE = 256

/** Returns a tile of SIDE x SIDE values from -`strength` to `strength`, mostly near zero. */
function noise(strength: number): Int8Array {
  const random = randomFrom('grain')
  return Int8Array.from({ length: SIDE * SIDE }, () => Math.round((random() + random() - 1) * strength))
}

const tiles = new Map<number, Int8Array>()

/**
 * Adds noise in place, to hide the banding of smooth skies in 8 bits. The first `painted` of the `channels` bytes of a
 * pixel get the same noise, so that only the brightness changes and not the colour.
 */
export function layGrain(
  pixels: Uint8Array,
  width: number,
  channels: number,
  painted: number,
  strength: number,
): void {
  const tile = tiles.get(strength) ?? noise(strength)
  tiles.set(strength, tile)
  const height = pixels.length / (width * channels)
  for (let row = 0; row < height; row++) {
    const line = (row % SIDE) * SIDE
    for (let column = 0; column < width; column++) {
      const grain = tile[line + (column % SIDE)] as number
      if (grain === 0) continue
      const at = (row * width + column) * channels
      for (let channel = at; channel < at + painted; channel++) {
        const value = (pixels[channel] as number) + grain
        pixels[channel] = value < 0 ? 0 : value > 255 ? 255 : value
      }
    }
  }
}
