// Draws the reference images as prints. The images are untrusted: a missing, corrupt or too large file, or a file that
// is not an image, becomes a labelled placeholder and does not fail the run.
//
// An image is decoded once, to the size of its print. The cost of decoding is estimated first, from the header only: 1 kB
// of AVIF can contain 67 megapixels, which take 1.2 GB.
import { readFile } from 'node:fs/promises'
import type { Metadata } from 'sharp'
import { hex } from './colour.js'
import { drawCard } from './lettering/card.js'
import type { Font } from './lettering/font.js'
import type { Palette } from './palette.js'
import { type Area, centred, type Overlay, pixels } from './scenery/stage.js'
import { even, type Size } from './size.js'

// No SVG, because an SVG may contain code and refer to local files. sharp uses the name `heif` for AVIF.
const FORMATS: ReadonlySet<string> = new Set(['jpeg', 'png', 'webp', 'gif', 'heif'])

/** Draws the reference files in rows within `area`, each in its own shape. */
export async function drawPrints(
  references: readonly (string | undefined)[],
  area: Area,
  palette: Palette,
  font: Font,
): Promise<Overlay[]> {
  const { columns, across, down } = gridOf(area, references.length)
  const gap = Math.min(across, down) * 0.05
  const room = { width: across - 2 * gap, height: down - 2 * gap }
  const prints: Overlay[] = []
  let costLeft = MAX_TOTAL_COST
  // Decode one after the other: fourteen photographs at once would take almost a gigabyte. Pass bytes instead of paths:
  // the images are untrusted, and libvips has fewer decoders for bytes than for paths.
  for (const [index, file] of references.entries()) {
    const image = file === undefined ? undefined : await readHeader(await readFile(file))
    const fits = image !== undefined && image.cost <= Math.min(MAX_COST, costLeft)
    if (fits) costLeft -= image.cost
    const reason = fits || image === undefined ? 'could not be read' : 'is too large'
    const print =
      (fits ? await decode(image, room, palette) : undefined) ??
      (await drawCard(room, font, palette, `reference ${index + 1} ${reason}`))
    const [column, row] = [index % columns, Math.floor(index / columns)]
    // The last row is centred.
    const inRow = Math.min(columns, references.length - row * columns)
    const left = area.left + area.width / 2 + (column - inRow / 2) * across
    prints.push(centred(print, { left, top: area.top + row * down, width: across, height: down }))
  }
  return prints
}

/** Returns the number of columns with which the shorter side of a cell is longest, and the size of a cell. */
export function gridOf({ width, height }: Size, count: number) {
  const grids = Array.from({ length: Math.max(1, count) }, (_, at) => {
    const [columns, rows] = [at + 1, Math.ceil(count / (at + 1))]
    return { columns, across: width / columns, down: height / rows }
  })
  return grids.reduce((one, other) =>
    Math.min(other.across, other.down) > Math.min(one.across, one.down) ? other : one,
  )
}

export interface ImageFile {
  readonly bytes: Uint8Array
  readonly header: Metadata
  readonly cost: number
}

/** Reads the header of an image. Returns undefined if the format is not supported. */
export async function readHeader(bytes: Uint8Array): Promise<ImageFile | undefined> {
  const sharp = await pixels()
  try {
    const header = await sharp(bytes, { limitInputPixels: false }).metadata()
    if (!FORMATS.has(header.format) || header.width < 1 || header.height < 1) return undefined
    return { bytes, header, cost: decodingCost(header, bytes) }
  } catch {
    return undefined
  }
}

/** Decodes an image to the size of its print. Returns undefined if the data after the header is corrupt. */
async function decode({ bytes, header }: ImageFile, room: Size, palette: Palette) {
  const sharp = await pixels()
  const { width, height, orientation = 1, exif } = header
  const [across, tall] = orientation >= 5 ? [height, width] : [width, height]
  const clear = clearShare(exif)
  const down = Math.max(1, Math.floor(tall * clear))
  const border = even(Math.min(room.width, room.height) * 0.02)
  const print = printSize(across / down, { width: room.width - 2 * border, height: room.height - 2 * border })
  const image = sharp(bytes, { limitInputPixels: MAX_PIXELS, failOn: 'error' }).autoOrient()
  if (clear < 1) image.extract({ left: 0, top: 0, width: across, height: down })
  try {
    const input = await image
      .resize({ ...print, fit: 'cover' })
      .flatten({ background: '#ffffff' })
      .toColourspace('srgb')
      .extend({ top: border, bottom: border, left: border, right: border, background: hex(palette.paper) })
      .png({ compressionLevel: 0 })
      .toBuffer()
    return { input, width: print.width + 2 * border, height: print.height + 2 * border }
  } catch {
    return undefined
  }
}

/** Ratios above 4:1 are cropped, because an image of 20:1 would look like a line. */
function printSize(ratio: number, room: Size): Size {
  const shape = Math.min(4, Math.max(0.25, ratio))
  const width = Math.min(room.width, room.height * shape)
  return { width: Math.max(2, even(width)), height: Math.max(2, even(width / shape)) }
}

const MARK = 'rushes preview'

/** Returns the mark in the metadata of a preview: the share of its height above the caption. */
export const previewMark = (clear: number): string => `${MARK} ${clear.toFixed(3)}`

/** Returns the share of an image above the caption of a preview. */
function clearShare(exif: Buffer | undefined): number {
  const [, share] = new RegExp(`${MARK} (0\\.\\d{3})`).exec(exif?.toString('latin1') ?? '') ?? []
  return Number(share) > 0.5 ? Number(share) : 1
}

export const MAX_PIXELS = 100_000_000
/** Maximum cost of one reference; `decodingCost` defines the unit. */
export const MAX_COST = 134_000_000
/** Maximum cost of all references of a run: fourteen photographs of 50 megapixels. */
const MAX_TOTAL_COST = 700_000_000

type ImageHeader = Pick<Metadata, 'format' | 'width' | 'height' | 'depth' | 'isProgressive'>

/**
 * Returns the cost of decoding, in pixels of a baseline JPEG. Infinity above `MAX_PIXELS`. Measured per megapixel: a
 * baseline JPEG takes 6 ms and no memory, since it is decoded row by row; a progressive JPEG, a GIF and a WebP 8 to 18
 * ms and up to 6 MB, an interlaced PNG 16 ms and 4 MB, with 16 bits 35 ms and 8 MB, an AVIF 36 to 120 ms and 18 MB. So
 * an AVIF may have 33 megapixels (8K).
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

/**
 * Number of scans without extra cost. A progressive JPEG has ten scans, and its thumbnail one or two. A JPEG of 0.7 MB,
 * with 819 scans of 100 megapixels, took 42 s.
 */
const USUAL_SCANS = 12
const START_OF_SCAN = Buffer.from([0xff, 0xda])

/**
 * Counts the scans of a JPEG, including those of an embedded thumbnail. The marker bytes cannot occur within a scan.
 */
function countScans(bytes: Uint8Array): number {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let count = 0
  for (let at = buffer.indexOf(START_OF_SCAN); at >= 0; at = buffer.indexOf(START_OF_SCAN, at + 2)) count++
  return count
}
