// How much time and memory a reference image takes to decode, by its header: 1 kB of AVIF can be 67 megapixels, which take
// 1.2 GB. Formats differ, so a plain bound on pixels would refuse photographs or admit such files.
import type { Metadata } from 'sharp'

export const MAX_PIXELS = 100_000_000
/** Of one reference. */
export const MAX_COST = 134_000_000
/** Of all references of a run: fourteen photographs of 50 megapixels. */
export const MAX_TOTAL_COST = 700_000_000

type ImageHeader = Pick<Metadata, 'format' | 'width' | 'height' | 'depth' | 'isProgressive'>

/**
 * In pixels of a baseline JPEG; infinite beyond `MAX_PIXELS`. Measured per megapixel: a baseline JPEG takes 6 ms and no
 * memory, since it is decoded row by row; a progressive JPEG, a GIF and a WebP 8 to 18 ms and up to 6 MB, an interlaced PNG
 * 16 ms and 4 MB, with 16 bits 35 ms and 8 MB, an AVIF 36 to 120 ms and 18 MB. So an AVIF may have 33 megapixels (8K).
 */
export function decodingCost(
  { format, width, height, depth, isProgressive }: ImageHeader,
  bytes: Uint8Array,
): number {
  const size = width * height
  if (size > MAX_PIXELS) return Number.POSITIVE_INFINITY
  if (format === 'heif') return 4 * size
  if (format === 'png') return size * (isProgressive ? 3 : 1) * (depth === 'ushort' ? 2 : 1)
  return format === 'jpeg' ? size * Math.max(1, countScans(bytes) / USUAL_SCANS) : size
}

/** A progressive JPEG has ten, and a thumbnail one or two. One of 0.7 MB, with 819 scans of 100 megapixels, took 42 s. */
const USUAL_SCANS = 12
const START_OF_SCAN = Buffer.from([0xff, 0xda])

/** A few more than there are when a thumbnail is embedded; within a scan these bytes cannot occur. */
function countScans(bytes: Uint8Array): number {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let count = 0
  for (let at = buffer.indexOf(START_OF_SCAN); at >= 0; at = buffer.indexOf(START_OF_SCAN, at + 2)) count++
  return count
}
