// Opens the reference images. They are untrusted: bytes that are missing, damaged, too large or not an image become a
// labelled placeholder, and never fail the run.
import type { Sharp } from 'sharp'
import { pixels } from '../scenery/svg.js'
import type { Size } from '../sizes.js'

export interface ReferenceImage {
  /** Its place in `image_urls`, counted from 1. */
  readonly number: number
  /** Width / height as seen (the camera's turn applied). 1 for a placeholder. */
  readonly ratio: number
  /**
   * The picture filling exactly this many pixels, cropped at its edges, sRGB, without transparency. `closeness` 1 shows as
   * much of it as the shape allows, 2 the middle half of that.
   */
  readonly fill: ((width: number, height: number, closeness?: number) => Promise<Buffer>) | undefined
}

// SVG is left out on purpose: it is a program that may point at local files. `heif` is how sharp names AVIF.
const FORMATS: ReadonlySet<string> = new Set(['jpeg', 'png', 'webp', 'gif', 'heif'])

// 16,384 squared is what WebP and AVIF can hold; a bomb declares more.
const MAX_PIXELS = 100_000_000

/** How much longer or shorter than the frame a picture may be to fill it: beyond that too much would be cut away. */
const LIKE_THE_FRAME = 1.9

/** The one picture that fills a frame of this size; undefined when there are several, or it is of quite another shape. */
export function backdropOf(
  references: readonly ReferenceImage[],
  { width, height }: Size,
): ReferenceImage['fill'] | undefined {
  const [only, another] = references
  if (only === undefined || another !== undefined) return undefined
  const off = only.ratio / (width / height)
  return Math.max(off, 1 / off) <= LIKE_THE_FRAME ? only.fill : undefined
}

export async function openReferences(
  references: readonly (Uint8Array | undefined)[],
): Promise<readonly ReferenceImage[]> {
  const opened: ReferenceImage[] = []
  // One after the other: fourteen photographs decoded side by side would be most of a gigabyte.
  for (const [index, bytes] of references.entries()) opened.push(await openReference(bytes, index + 1))
  return opened
}

async function openReference(bytes: Uint8Array | undefined, number: number): Promise<ReferenceImage> {
  const placeholder: ReferenceImage = { number, ratio: 1, fill: undefined }
  if (bytes === undefined || bytes.length === 0) return placeholder
  const sharp = await pixels()
  const open = (): Sharp => sharp(bytes, { limitInputPixels: MAX_PIXELS, failOn: 'error' })
  try {
    const { format, width, height, orientation = 1 } = await open().metadata()
    if (!FORMATS.has(format) || width < 1 || height < 1) return placeholder
    // A header may be sound and the body not: decoding it once, small, tells.
    await open().resize(16, 16, { fit: 'fill' }).raw().toBuffer()
    const ratio = orientation >= 5 ? height / width : width / height
    const fill = (across: number, down: number, closeness = 1): Promise<Buffer> => {
      const whole = { width: Math.round(across * closeness), height: Math.round(down * closeness) }
      const left = Math.floor((whole.width - across) / 2)
      const top = Math.floor((whole.height - down) / 2)
      return open()
        .autoOrient()
        .resize({ ...whole, fit: 'cover' })
        .extract({ left, top, width: across, height: down })
        .flatten({ background: '#ffffff' })
        .toColourspace('srgb')
        .png({ compressionLevel: 0 })
        .toBuffer()
    }
    return { number, ratio, fill }
  } catch {
    return placeholder
  }
}
