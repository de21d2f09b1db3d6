// Opens the reference images and places them on a scene. The images are untrusted: a missing, corrupt or too large
// file, or a file that is not an image, becomes a labelled placeholder and does not fail the run.
//
// An image is decoded once, and kept only at the size that the frame needs. The cost of decoding is estimated first,
// from the header only: 1 kB of AVIF can contain 67 megapixels, which take 1.2 GB.
import { readFile } from 'node:fs/promises'
import type { Metadata, OverlayOptions } from 'sharp'
import { hex } from './colour.js'
import type { Font } from './lettering/font.js'
import type { Palette } from './palette.js'
import type { Size } from './render-request.js'
import { type Area, box, path, pixels, stageSvg } from './scenery/stage.js'

export interface ReferenceImage {
  /** Position in `image_urls`, counted from 1. */
  readonly number: number
  /** Width / height, with the orientation of a photograph applied. 1 for a placeholder. */
  readonly ratio: number
  /**
   * Returns the image in exactly this size, in sRGB and without transparency; cropped at the edges if the ratio differs.
   * For a placeholder, a string: the text to show.
   */
  readonly fill: ((width: number, height: number) => Promise<Buffer>) | string
}

// No SVG, because an SVG may contain code and refer to local files. sharp uses the name `heif` for AVIF.
const FORMATS: ReadonlySet<string> = new Set(['jpeg', 'png', 'webp', 'gif', 'heif'])

/** Maximum size of all decoded references together: 150 MB. */
const MAX_KEPT_PIXELS = 50_000_000

/** Opens the reference files. `room` is the largest size that a reference must fill. */
export async function openReferences(
  references: readonly (string | undefined)[],
  room: Size,
): Promise<readonly ReferenceImage[]> {
  const opened: ReferenceImage[] = []
  const keptPixels = MAX_KEPT_PIXELS / references.length
  let costLeft = MAX_TOTAL_COST
  // Decode one after the other: fourteen photographs at once would take almost a gigabyte. Pass bytes instead of paths:
  // the images are untrusted, and libvips has fewer decoders for bytes than for paths.
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

/** Reads the header of an image. Returns undefined if the format is not supported. */
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

/** Decodes an image. Returns undefined if the data after the header is corrupt. */
async function decode(
  { bytes, header: { width, height, orientation = 1, exif } }: ImageFile,
  room: Size,
  keptPixels: number,
): Promise<Pick<ReferenceImage, 'ratio' | 'fill'> | undefined> {
  const sharp = await pixels()
  const isTurned = orientation >= 5
  const [across, down] = isTurned ? [height, width] : [width, height]
  const shrink = Math.min(
    1,
    Math.max(room.width / across, room.height / down),
    Math.sqrt(keptPixels / (width * height)),
  )
  const kept = {
    width: Math.max(1, Math.round(across * shrink)),
    height: Math.max(1, Math.round(down * shrink)),
  }
  const clear = clearPart(exif)
  const top = Math.floor(kept.height * clear.top)
  const tall = Math.max(1, Math.ceil(kept.height * clear.bottom) - top)
  try {
    const { data, info } = await sharp(bytes, { limitInputPixels: MAX_PIXELS, failOn: 'error' })
      .autoOrient()
      .resize({ ...kept, fit: 'fill' })
      .extract({ left: 0, top, width: kept.width, height: tall })
      .flatten({ background: '#ffffff' })
      .toColourspace('srgb')
      .raw()
      .toBuffer({ resolveWithObject: true })
    const raw = { width: info.width, height: info.height, channels: info.channels }
    return {
      ratio: across / (down * (clear.bottom - clear.top)),
      fill: (width, height) =>
        sharp(data, { raw }).resize({ width, height, fit: 'cover' }).png({ compressionLevel: 0 }).toBuffer(),
    }
  } catch {
    return undefined
  }
}

const MARK = 'rushes preview'

/** Returns the mark in the metadata of a preview: which part of its height has neither mark nor caption. */
export const previewMark = ({ top, bottom }: { readonly top: number; readonly bottom: number }): string =>
  `${MARK} ${top.toFixed(3)} ${bottom.toFixed(3)}`

/** Returns the part of an image without the caption of a preview, as shares of its height. */
function clearPart(exif: Buffer | undefined): { readonly top: number; readonly bottom: number } {
  const [, top, bottom] =
    new RegExp(`${MARK} (0\\.\\d{3}) (0\\.\\d{3})`).exec(exif?.toString('latin1') ?? '') ?? []
  const isSound = Number(top) < 0.3 && Number(bottom) > 0.5
  return isSound ? { top: Number(top), bottom: Number(bottom) } : { top: 0, bottom: 1 }
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

/** Returns the references as overlays for sharp, from back to front, for a canvas of `size` pixels. */
export async function layPrints(
  references: readonly ReferenceImage[],
  size: Size,
  stage: Size,
  area: Area,
  palette: Palette,
  label: Font,
): Promise<OverlayOptions[]> {
  const unit = size.width / stage.width
  const cards = placeCards(
    area,
    references.map(({ ratio }) => ratio),
  )
  const overlays: OverlayOptions[] = []
  let drawing = ''
  for (const [index, { fill, number }] of references.entries()) {
    const card = cards[index]
    if (card === undefined) continue
    const { x, y, width, height } = card
    drawing +=
      box([x - 4, y - 2, width + 14, height + 16], hex(palette.ink), 2, 0.35) +
      box([x - BORDER, y - BORDER, width + 2 * BORDER, height + 2 * BORDER], hex(palette.paper))
    if (typeof fill === 'string') drawing += drawPlaceholder(number, fill, card, palette, label)
    else {
      const across = Math.max(1, Math.round(width * unit))
      const input = await fill(across, Math.max(1, Math.round(height * unit)))
      overlays.push({ input, left: Math.round(x * unit), top: Math.round(y * unit) })
    }
  }
  return [{ input: stageSvg(size, stage, drawing), left: 0, top: 0 }, ...overlays]
}

function drawPlaceholder(number: number, problem: string, card: Area, palette: Palette, label: Font): string {
  const size = Math.min(card.width / 10, card.height / 5)
  const text = [`reference ${number}`, problem].map((line, index) => {
    const x = card.x + (card.width - label.width(line, size)) / 2
    return label.outline(line, x, card.y + card.height / 2 + (index - 0.1) * size * 1.4, size)
  })
  return (
    box([card.x, card.y, card.width, card.height], hex(palette.middle)) +
    path(text.join(''), hex(palette.ink))
  )
}

const BORDER = 8
const GAP = 28

/**
 * Returns a rectangle within `area` for each image, in order and with its ratio (width / height): a grid with the number
 * of columns for which the smallest image is largest.
 */
export function placeCards(area: Area, ratios: readonly number[]): Area[] {
  // Ratios above 4:1 are cropped, because an image of 20:1 would look like a line.
  const shapes = ratios.map((ratio) => Math.min(4, Math.max(0.25, ratio)))
  const layouts = shapes.map((_, index) => gridOf(area, shapes, index + 1))
  const smallest = (cards: readonly Area[]) => Math.min(...cards.map(({ width, height }) => width * height))
  return layouts.reduce((one, other) => (smallest(other) > smallest(one) ? other : one), layouts[0] ?? [])
}

function gridOf(area: Area, shapes: readonly number[], columns: number): Area[] {
  const rows = Math.ceil(shapes.length / columns)
  const [across, down] = [(area.width + GAP) / columns, (area.height + GAP) / rows]
  return shapes.map((shape, index) => {
    const width = Math.min(across - GAP, (down - GAP) * shape)
    const [column, row] = [index % columns, Math.floor(index / columns)]
    // The last row is centred.
    const inRow = row === rows - 1 ? shapes.length - row * columns : columns
    const x = area.x + (area.width - GAP) / 2 + (column + 0.5 - inRow / 2) * across + GAP / 2 - width / 2
    return { x, y: area.y + (row + 0.5) * down - GAP / 2 - width / shape / 2, width, height: width / shape }
  })
}
