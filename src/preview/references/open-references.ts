// Opens the reference images. They are untrusted: bytes that are missing, damaged, too large or not an image become a
// labelled placeholder, and never fail the run.
//
// A picture is decoded once, and kept no larger than the frame needs it. Whether decoding is affordable is judged before,
// by the header alone: 1 kB of AVIF can be 67 megapixels, which take 1.2 GB.
import { readFile } from 'node:fs/promises'
import type { Metadata } from 'sharp'
import { pixels } from '../scenery/svg.js'
import type { Size } from '../sizes.js'
import { decodingCost, MAX_COST, MAX_PIXELS, MAX_TOTAL_COST } from './decoding-cost.js'

export interface ReferenceImage {
  /** Its place in `image_urls`, counted from 1. */
  readonly number: number
  /** Width / height as seen (the camera's turn applied). 1 for a placeholder. */
  readonly ratio: number
  /**
   * The picture filling exactly this many pixels, cropped at its edges, sRGB, without transparency. `closeness` 1 shows as
   * much of it as the shape allows, 2 the middle half of that. For a placeholder, what it says.
   */
  readonly fill: ((width: number, height: number, closeness?: number) => Promise<Buffer>) | string
}

// SVG is left out on purpose: it is a program that may point at local files. `heif` is how sharp names AVIF.
const FORMATS: ReadonlySet<string> = new Set(['jpeg', 'png', 'webp', 'gif', 'heif'])

/** Of all references together, as they are kept: 150 MB. */
const MAX_KEPT_PIXELS = 50_000_000

/** How much longer or shorter than the frame a picture may be to fill it: beyond that too much would be cut away. */
const LIKE_THE_FRAME = 1.9

/** The one picture that fills a frame of this size; undefined when there are several, or it is of quite another shape. */
export function backdropOf(
  references: readonly ReferenceImage[],
  { width, height }: Size,
): Exclude<ReferenceImage['fill'], string> | undefined {
  const [only, another] = references
  if (only === undefined || another !== undefined || typeof only.fill === 'string') return undefined
  const off = only.ratio / (width / height)
  return Math.max(off, 1 / off) <= LIKE_THE_FRAME ? only.fill : undefined
}

/** From their files. `room` is the largest size that a reference has to fill. */
export async function openReferences(
  references: readonly (string | undefined)[],
  room: Size,
): Promise<readonly ReferenceImage[]> {
  const opened: ReferenceImage[] = []
  const keptPixels = MAX_KEPT_PIXELS / references.length
  let costLeft = MAX_TOTAL_COST
  // One after the other: fourteen photographs decoded side by side would be most of a gigabyte. As bytes, since libvips has more
  // decoders for paths than for bytes.
  for (const [index, path] of references.entries()) {
    const file = await readHeader(path === undefined ? undefined : await readFile(path))
    const isTooLarge = file !== undefined && file.cost > Math.min(MAX_COST, costLeft)
    if (file !== undefined && !isTooLarge) costLeft -= file.cost
    const picture = file === undefined || isTooLarge ? undefined : await decode(file, room, keptPixels)
    const number = index + 1
    opened.push(
      picture === undefined
        ? { number, ratio: 1, fill: isTooLarge ? 'is too large' : 'could not be read' }
        : { number, ...picture },
    )
  }
  return opened
}

export interface ImageFile {
  readonly bytes: Uint8Array
  readonly header: Metadata
  readonly cost: number
}

/** Undefined for bytes that are not an image of these formats. */
export async function readHeader(bytes: Uint8Array | undefined): Promise<ImageFile | undefined> {
  if (bytes === undefined || bytes.length === 0) return undefined
  const sharp = await pixels()
  try {
    const header = await sharp(bytes, { limitInputPixels: false }).metadata()
    if (!FORMATS.has(header.format) || header.width < 1 || header.height < 1) return undefined
    return { bytes, header, cost: decodingCost(header, bytes) }
  } catch {
    return undefined
  }
}

/** Undefined when a header is sound and the body is not. */
async function decode(
  { bytes, header: { width, height, orientation = 1 } }: ImageFile,
  room: Size,
  keptPixels: number,
): Promise<Pick<ReferenceImage, 'ratio' | 'fill'> | undefined> {
  const sharp = await pixels()
  const seen = orientation >= 5 ? { width: height, height: width } : { width, height }
  const shrink = Math.min(
    1,
    Math.max(room.width / seen.width, room.height / seen.height),
    Math.sqrt(keptPixels / (width * height)),
  )
  const kept = {
    width: Math.max(1, Math.round(seen.width * shrink)),
    height: Math.max(1, Math.round(seen.height * shrink)),
  }
  try {
    const { data, info } = await sharp(bytes, { limitInputPixels: MAX_PIXELS, failOn: 'error' })
      .autoOrient()
      .resize({ ...kept, fit: 'fill' })
      .flatten({ background: '#ffffff' })
      .toColourspace('srgb')
      .raw()
      .toBuffer({ resolveWithObject: true })
    const raw = { width: info.width, height: info.height, channels: info.channels }
    const fill = (across: number, down: number, closeness = 1): Promise<Buffer> => {
      const whole = { width: Math.round(across * closeness), height: Math.round(down * closeness) }
      const left = Math.floor((whole.width - across) / 2)
      const top = Math.floor((whole.height - down) / 2)
      return sharp(data, { raw })
        .resize({ ...whole, fit: 'cover' })
        .extract({ left, top, width: across, height: down })
        .png({ compressionLevel: 0 })
        .toBuffer()
    }
    return { ratio: seen.width / seen.height, fill }
  } catch {
    return undefined
  }
}
