/** Width and height of a picture, from the beginning of its file. */
import { disableTypes, imageSize } from 'image-size'
import { readBeginning } from '../../host/file-content.js'

/** A JPEG has its size after its previews and profiles. */
const MAX_HEAD_BYTES = 256 * 1024
const FIRST_BYTES = 4 * 1024

// Formats that browsers do not show, and SVG, whose reader searches the text with expressions.
disableTypes([
  'cur',
  'dds',
  'icns',
  'ico',
  'j2c',
  'jp2',
  'jxl',
  'jxl-stream',
  'ktx',
  'pnm',
  'psd',
  'svg',
  'tga',
  'tiff',
])

export interface PictureSize {
  readonly width: number
  readonly height: number
}

/** As it is shown: a photograph on its side is turned. Undefined when the file cannot be read. */
export function pictureSizeOf(path: string): PictureSize | undefined {
  try {
    return sizeOf(readBeginning(path, FIRST_BYTES)) ?? sizeOf(readBeginning(path, MAX_HEAD_BYTES))
  } catch {
    return undefined
  }
}

function sizeOf(bytes: Uint8Array): PictureSize | undefined {
  try {
    const { width, height, orientation = 1 } = imageSize(bytes)
    if (!(width > 0 && height > 0)) return undefined
    return orientation >= 5 ? { width: height, height: width } : { width, height }
  } catch {
    return undefined
  }
}
