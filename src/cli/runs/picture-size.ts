/** Width and height of a picture, from the beginning of its file. */
import { disableTypes, imageSize } from 'image-size'
import { readBeginning } from '../../host/files.js'
import type { Size } from '../../service/engines/sizes.js'

/** Maximum number of bytes to read. In a JPEG, the size comes after embedded previews and profiles. */
const MAX_HEAD_BYTES = 256 * 1024
const FIRST_BYTES = 4 * 1024

// Formats that browsers do not show, and SVG, whose parser runs regular expressions on the text.
const UNUSED = 'cur dds icns ico j2c jp2 jxl jxl-stream ktx pnm psd svg tga tiff'
disableTypes(UNUSED.split(' ') as Parameters<typeof disableTypes>[0])

/**
 * Returns width and height as shown, with the orientation of a photograph applied. Undefined when the file cannot be
 * read.
 */
export function pictureSizeOf(path: string): Size | undefined {
  try {
    return sizeInHead(readBeginning(path, FIRST_BYTES)) ?? sizeInHead(readBeginning(path, MAX_HEAD_BYTES))
  } catch {
    return undefined
  }
}

function sizeInHead(bytes: Uint8Array): Size | undefined {
  try {
    const { width, height, orientation = 1 } = imageSize(bytes)
    if (!(width > 0 && height > 0)) return undefined
    return orientation >= 5 ? { width: height, height: width } : { width, height }
  } catch {
    return undefined
  }
}
