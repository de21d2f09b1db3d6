/** Width and height of a picture, from the head of its file. */
import { readBeginning } from '../host/files.js'
import { mediaContentType } from '../protocol/media.js'

const HEAD_BYTES = 4 * 1024

/**
 * Resolves with width and height as shown, with the orientation of a photograph applied. Undefined when the file cannot be
 * read, or is of another format than references have: the reader of SVG runs on text from outside.
 */
export async function pictureSizeOf(
  path: string,
): Promise<{ readonly width: number; readonly height: number } | undefined> {
  try {
    if (mediaContentType(readBeginning(path, HEAD_BYTES), 'image') === undefined) return undefined
    const { default: sharp } = await import('sharp')
    return (await sharp(path).metadata()).autoOrient
  } catch {
    return undefined
  }
}
