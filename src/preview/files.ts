// Opens untrusted pictures (reference images, outputs of other engines, files of the user), writes the output of the
// renderer, and finds the data files and the native code of its packages.
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readBeginning, writeAtomically } from '../host/files.js'
import { mediaContentType } from '../protocol/media.js'
import type { RenderedFile, RenderJob } from '../service/engines/engine.js'
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

/** Writes under a temporary name and renames, so that no incomplete file is visible. */
export async function writeOutput(
  { folder, signal, onProgress }: RenderJob,
  name: string,
  contentType: string,
  content: Uint8Array,
): Promise<RenderedFile> {
  const beforeReplace = () => signal.throwIfAborted()
  await writeAtomically(join(folder, name), content, { isFlushed: false, beforeReplace })
  onProgress?.(1)
  return { name, contentType }
}

/**
 * Returns the path of a file of a package. The build copies the file to `dist/parts/<name>`; in the source tree, the
 * file is in the package.
 */
export function packagedFile(name: string, specifier: string): string {
  const built = fileURLToPath(new URL(`./parts/${name}`, import.meta.url))
  return existsSync(built) ? built : createRequire(import.meta.url).resolve(specifier)
}
