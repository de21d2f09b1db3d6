// An engine that creates the thumbnails of the console. The input contains the path of a picture. Pictures are
// untrusted, like reference images: the cost of decoding is checked from the header first. Rejects for pictures that
// are too expensive or corrupt.
import { readFile } from 'node:fs/promises'
import type { Engine } from '../service/engines/engine.js'
import { writeOutput } from './files.js'
import { MAX_COST, MAX_PIXELS, readHeader } from './references.js'
import { pixels } from './scenery/stage.js'

/** Length of the longer side in pixels: twice the size in the list, for high-density screens. */
const LONGER_SIDE = 160
const NAME = 'thumbnail.webp'

export function createThumbnailEngine(): Engine {
  return {
    async render({ input, folder, signal }) {
      const picture = await readHeader(await readFile(String(input.path)))
      if (picture === undefined) throw new Error('not a picture that can be read')
      if (picture.cost > MAX_COST) throw new Error('too large a picture')
      const sharp = await pixels()
      const small = await sharp(picture.bytes, { limitInputPixels: MAX_PIXELS, failOn: 'error' })
        .autoOrient()
        .resize({ width: LONGER_SIDE, height: LONGER_SIDE, fit: 'inside', withoutEnlargement: true })
        .webp({ quality: 75 })
        .toBuffer()
      await writeOutput(folder, NAME, [small], signal)
      return [{ name: NAME, contentType: 'image/webp' }]
    },
  }
}
