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
import { box, path, pixels } from './scenery/stage.js'

export interface ReferenceImage {
  /** Position in `image_urls`, counted from 1. */
  readonly number: number
  /** Width / height, with the orientation of a photograph applied. 1 for a placeholder. */
  readonly ratio: number
  /**
   * Returns the image in exactly this size, cropped at the edges, in sRGB and without transparency. `closeness` 1 shows
   * as much as the ratio allows, 2 the middle half of that in each direction. For a placeholder, a string: the text to
   * show.
   */
  readonly fill: ((width: number, height: number, closeness?: number) => Promise<Buffer>) | string
}

// No SVG, because an SVG may contain code and refer to local files. sharp uses the name `heif` for AVIF.
const FORMATS: ReadonlySet<string> = new Set(['jpeg', 'png', 'webp', 'gif', 'heif'])

/** Maximum size of all decoded references together: 150 MB. */
const MAX_KEPT_PIXELS = 50_000_000

/**
 * Maximum factor between the ratio of an image and the ratio of the frame that it fills. Beyond this, too much would be
 * cropped.
 */
const LIKE_THE_FRAME = 1.9

/**
 * Returns the image that fills a frame of this size. Undefined for several references, or for an image with a very
 * different ratio.
 */
export function backdropOf(
  references: readonly ReferenceImage[],
  { width, height }: Size,
): Exclude<ReferenceImage['fill'], string> | undefined {
  const [only, another] = references
  if (only === undefined || another !== undefined || typeof only.fill === 'string') return undefined
  const off = only.ratio / (width / height)
  return Math.max(off, 1 / off) <= LIKE_THE_FRAME ? only.fill : undefined
}

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
  { bytes, header: { width, height, orientation = 1 } }: ImageFile,
  room: Size,
  keptPixels: number,
): Promise<Pick<ReferenceImage, 'ratio' | 'fill'> | undefined> {
  const sharp = await pixels()
  const oriented = orientation >= 5 ? { width: height, height: width } : { width, height }
  const shrink = Math.min(
    1,
    Math.max(room.width / oriented.width, room.height / oriented.height),
    Math.sqrt(keptPixels / (width * height)),
  )
  const keptSize = {
    width: Math.max(1, Math.round(oriented.width * shrink)),
    height: Math.max(1, Math.round(oriented.height * shrink)),
  }
  try {
    const { data, info } = await sharp(bytes, { limitInputPixels: MAX_PIXELS, failOn: 'error' })
      .autoOrient()
      .resize({ ...keptSize, fit: 'fill' })
      .flatten({ background: '#ffffff' })
      .toColourspace('srgb')
      .raw()
      .toBuffer({ resolveWithObject: true })
    const raw = { width: info.width, height: info.height, channels: info.channels }
    const fill = (across: number, down: number, closeness = 1): Promise<Buffer> => {
      const fullSize = { width: Math.round(across * closeness), height: Math.round(down * closeness) }
      const left = Math.floor((fullSize.width - across) / 2)
      const top = Math.floor((fullSize.height - down) / 2)
      return sharp(data, { raw })
        .resize({ ...fullSize, fit: 'cover' })
        .extract({ left, top, width: across, height: down })
        .png({ compressionLevel: 0 })
        .toBuffer()
    }
    return { ratio: oriented.width / oriented.height, fill }
  } catch {
    return undefined
  }
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

/**
 * Returns the overlays for sharp, from back to front, for a canvas of `size` pixels. `side` is passed to `placeCards`.
 */
export async function layPrints(
  references: readonly ReferenceImage[],
  size: Size,
  palette: Palette,
  label: Font,
  side?: number,
): Promise<OverlayOptions[]> {
  const cards = placeCards(
    size.width,
    size.height,
    references.map(({ ratio }) => ratio),
    side,
  )
  const border = Math.max(3, Math.round(Math.min(size.width, size.height) * 0.008))
  const frames = cards.map(
    ({ x, y, width, height }) =>
      `<rect x="${x - border * 0.4}" y="${y + border}" width="${width + border * 1.6}"` +
      ` height="${height + border * 1.6}" ` +
      `fill="${hex(palette.ink)}" fill-opacity=".35"/>` +
      box(x - border, y - border, width + 2 * border, height + 2 * border, hex(palette.paper)),
  )
  const overlays: OverlayOptions[] = []
  let drawing = frames.join('')
  for (const [index, card] of cards.entries()) {
    const reference = references[index]
    if (reference === undefined) continue
    const width = Math.max(1, Math.round(card.width))
    const height = Math.max(1, Math.round(card.height))
    if (typeof reference.fill === 'string') {
      drawing += drawPlaceholder(reference.number, reference.fill, card, palette, label)
      continue
    }
    const input = await reference.fill(width, height)
    overlays.push({ input, left: Math.round(card.x), top: Math.round(card.y) })
  }
  const svg =
    `<svg xmlns="http://www.w3.org/2000/svg" width="${size.width}" height="${size.height}">${drawing}` +
    '</svg>'
  return [{ input: Buffer.from(svg), left: 0, top: 0 }, ...overlays]
}

function drawPlaceholder(
  number: number,
  problem: string,
  card: { x: number; y: number; width: number; height: number },
  palette: Palette,
  label: Font,
): string {
  const lines = [`reference ${number}`, problem]
  const size = Math.min(card.width / 10, card.height / 5)
  const text = lines.map((line, index) => {
    const x = card.x + (card.width - label.width(line, size)) / 2
    return label.outline(line, x, card.y + card.height / 2 + (index - 0.1) * size * 1.4, size)
  })
  return (
    box(card.x, card.y, card.width, card.height, hex(palette.middle)) +
    path(text.join(''), hex(palette.paper))
  )
}

interface Card {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

/** Area for the references, as shares of the frame: below the mark and above the caption. */
const ROOM = { side: 0.05, top: 0.13, bottom: 0.76 } as const
const GAP = 0.03
/** Maximum height of a row, relative to an equal share of the available height. */
const MAX_ROW_SHARE = 1.5

/**
 * Returns a rectangle for each image, in the unit of `width` and `height`. Keeps the ratios (width / height) and the
 * order of the images. Tries every number of rows, with the images distributed evenly, and takes the number for which
 * the smallest image is largest. `side` is the share of the width that stays free on each side.
 */
export function placeCards(
  width: number,
  height: number,
  ratios: readonly number[],
  side: number = ROOM.side,
): Card[] {
  // Ratios above 4:1 are cropped, because an image of 20:1 would look like a line.
  const shapes = ratios.map((ratio) => Math.min(4, Math.max(0.25, ratio)))
  const room = { width: (1 - 2 * side) * width, height: (ROOM.bottom - ROOM.top) * height }
  const gap = GAP * Math.min(width, height)
  const layouts = shapes.map((_, index) => rowsOf(shapes, index + 1, room, gap))
  const lowestRow = (rows: readonly Row[]) => Math.min(...rows.map((row) => row.height))
  const best = layouts.reduce(
    (one, other) => (lowestRow(other) > lowestRow(one) ? other : one),
    layouts[0] ?? [],
  )
  return layOut(best, width, ROOM.top * height + room.height / 2, gap)
}

interface Row {
  readonly shapes: readonly number[]
  readonly height: number
}

function rowsOf(
  shapes: readonly number[],
  count: number,
  room: { readonly width: number; readonly height: number },
  gap: number,
): readonly Row[] {
  const ends = Array.from({ length: count + 1 }, (_, row) => Math.round((row * shapes.length) / count))
  const free = room.height - gap * (count - 1)
  const rows = ends.slice(1).map((end, row) => {
    const rowShapes = shapes.slice(ends[row], end)
    const widest = (room.width - gap * (rowShapes.length - 1)) / sumOf(rowShapes)
    return { shapes: rowShapes, height: Math.min((free / count) * MAX_ROW_SHARE, widest) }
  })
  const shrink = Math.max(0, Math.min(1, free / sumOf(rows.map((row) => row.height))))
  return rows.map((row) => ({ ...row, height: row.height * shrink }))
}

function layOut(rows: readonly Row[], width: number, middle: number, gap: number): Card[] {
  let y = middle - (sumOf(rows.map(({ height }) => height)) + gap * (rows.length - 1)) / 2
  return rows.flatMap(({ shapes, height }) => {
    let x = (width - sumOf(shapes) * height - gap * (shapes.length - 1)) / 2
    const cards = shapes.map((shape) => {
      const card = { x, y, width: shape * height, height }
      x += card.width + gap
      return card
    })
    y += height + gap
    return cards
  })
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0)
