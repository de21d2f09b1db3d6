// Opens untrusted pictures: reference images, outputs of other engines and files of the user.
import { pixels } from './files.js'

/**
 * Maximum number of pixels of each format. No SVG, which may contain code and refer to local files. `heif` is AVIF, of
 * which 1 kB can contain 67 megapixels that take 1.2 GB.
 */
const MAX_PIXELS: Readonly<Record<string, number>> = {
  jpeg: 100e6,
  png: 100e6,
  webp: 100e6,
  gif: 100e6,
  heif: 33e6,
}
/** A JPEG of 0.7 MB with 819 scans took 42 s. */
const MAX_DECODING_SECONDS = 20

/** Opens an untrusted picture, turned upright. Throws if it has too many pixels or its header is corrupt. */
export async function openPicture(bytes: Uint8Array) {
  const sharp = await pixels()
  const header = await Promise.resolve()
    .then(() => sharp(bytes, { limitInputPixels: false }).metadata())
    .catch(() => undefined)
  const most = MAX_PIXELS[header?.format ?? '']
  if (header === undefined || most === undefined) throw new Error('unknown or damaged picture format')
  if (header.width * header.height > most) throw new Error('the picture has too many pixels')
  const picture = sharp(bytes, { limitInputPixels: most, failOn: 'error' })
  const { width, height } = header.autoOrient
  return {
    width,
    height,
    exif: header.exif,
    picture: picture.timeout({ seconds: MAX_DECODING_SECONDS }).autoOrient(),
  }
}
