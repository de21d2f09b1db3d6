// An engine that creates the thumbnails of the console. The input contains the path of a picture. Pictures are
// untrusted, like reference images: the cost of decoding is checked from the header first. Rejects for pictures that
// are too expensive or corrupt.
import { readFile } from 'node:fs/promises'
import type { Sharp } from 'sharp'
import type { Engine, RenderedFile, RenderJob } from '../service/engines/engine.js'
import { writeOutput } from './files.js'
import { MAX_COST, MAX_PIXELS, readHeader } from './references.js'
import { pixels } from './scenery/stage.js'
import type { Size } from './size.js'

/** Maximum size in pixels: sharp in the list, and good in the grid on high-density screens. */
const SIZE = { width: 384, height: 384 }

export const createThumbnailEngine = (): Engine => ({
  async render(job) {
    const picture = await openPicture(await readFile(String(job.input.path)), SIZE)
    const small = await picture.webp({ quality: 75 }).toBuffer()
    return [await writeOutput(job, 'thumbnail.webp', 'image/webp', small)]
  },
})

/** Converts the reference image of a job to PNG, in its own size. */
export async function convertReference(job: RenderJob): Promise<RenderedFile> {
  const whole = { width: MAX_PIXELS, height: MAX_PIXELS }
  const picture = await openPicture(await readFile(job.references[0] ?? ''), whole)
  return writeOutput(job, 'reference.png', 'image/png', await picture.png().toBuffer())
}

/** Opens a picture, reduced to fit `size`. Throws if it is too expensive or its header is corrupt. */
export async function openPicture(bytes: Uint8Array, size: Size): Promise<Sharp> {
  const picture = await readHeader(bytes)
  if (picture === undefined) throw new Error('unknown or damaged picture format')
  if (picture.cost > MAX_COST) throw new Error('the picture has too many pixels')
  const sharp = await pixels()
  return sharp(picture.bytes, { limitInputPixels: MAX_PIXELS, failOn: 'error' })
    .autoOrient()
    .resize({ ...size, fit: 'inside', withoutEnlargement: true })
}
