// Opens untrusted pictures: reference images, outputs of other engines and files of the user.
import { readBeginning } from '../host/files.js'
import { mediaContentType } from '../protocol/media.js'
import type { Size } from './size.js'

/** Loads sharp with the first picture, without its cache: no drawing is repeated. */
export async function pixels() {
  const { default: sharp } = await import('sharp')
  sharp.cache(false)
  return sharp
}

/** No SVG, which may contain code and refer to local files. */
const FORMATS = ['jpeg', 'png', 'webp', 'gif', 'heif']
/** A JPEG of 0.7 MB with 819 scans took 42 s. */
const MAX_DECODING_SECONDS = 20

/** Opens an untrusted picture, turned upright. Throws if it has too many pixels or its header is corrupt. */
export async function openPicture(bytes: Uint8Array) {
  const sharp = await pixels()
  const header = await Promise.resolve()
    .then(() => sharp(bytes, { limitInputPixels: false }).metadata())
    .catch(() => undefined)
  if (header === undefined || !FORMATS.includes(header.format))
    throw new Error('unknown or damaged picture format')
  // `heif` is AVIF, of which 1 kB can contain 67 megapixels that take 1.2 GB.
  const limitInputPixels = header.format === 'heif' ? 33e6 : 100e6
  if (header.width * header.height > limitInputPixels) throw new Error('the picture has too many pixels')
  const picture = sharp(bytes, { limitInputPixels, failOn: 'error' })
  return {
    ...header.autoOrient,
    picture: picture.timeout({ seconds: MAX_DECODING_SECONDS }).autoOrient(),
  }
}

/**
 * Resolves with width and height as shown, with the orientation of a photograph applied. Undefined when the file cannot be
 * read, or is of another format than references have: the reader of SVG runs on text from outside.
 */
export async function pictureSizeOf(path: string): Promise<Size | undefined> {
  try {
    if (mediaContentType(readBeginning(path, 4_096), 'image') === undefined) return undefined
    return (await (await pixels())(path).metadata()).autoOrient
  } catch {
    return undefined
  }
}
