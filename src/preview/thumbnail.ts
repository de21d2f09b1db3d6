// An engine that creates the thumbnails of the console. The input contains the path of a picture. Rejects for pictures that
// have too many pixels or are corrupt.
import { readFile } from 'node:fs/promises'
import type { Engine } from '../service/engines/engine.js'
import { openPicture, writeOutput } from './files.js'

/** Maximum size in pixels: sharp in the list, and good in the grid on high-density screens. */
const SIDE = 384

export const createThumbnailEngine = (): Engine => ({
  async render(job) {
    const { picture } = await openPicture(await readFile(String(job.input.path)))
    const small = picture.resize({ width: SIDE, height: SIDE, fit: 'inside', withoutEnlargement: true })
    return [
      await writeOutput(job, 'thumbnail.webp', 'image/webp', await small.webp({ quality: 75 }).toBuffer()),
    ]
  },
})
