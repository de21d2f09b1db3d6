/** Width and height of a picture, from the beginning of its file. */
import { closeSync, openSync, readSync } from 'node:fs'
import { disableTypes, imageSize } from 'image-size'

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
    const file = openSync(path, 'r')
    try {
      return sizeOf(head(file, FIRST_BYTES)) ?? sizeOf(head(file, MAX_HEAD_BYTES))
    } finally {
      closeSync(file)
    }
  } catch {
    return undefined
  }
}

function head(file: number, bytes: number): Uint8Array {
  const buffer = Buffer.alloc(bytes)
  return buffer.subarray(0, readSync(file, buffer, 0, bytes, 0))
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
