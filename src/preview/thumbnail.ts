// Makes the thumbnails of the console, as an engine: the input names the file of a picture. It is untrusted, as reference images
// are, and is judged by its header before it is decoded. Rejects for pictures that are refused or damaged.
import { readFile } from 'node:fs/promises'
import type { Engine } from '../service/engines/engine.js'
import { writeOutput } from './files.js'
import { MAX_COST, MAX_PIXELS, readHeader } from './references.js'
import { pixels } from './scenery/stage.js'

/** Twice the size in the list, for dense screens. */
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
