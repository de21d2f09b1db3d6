// Opens the reference images and lays them onto a scene. They are untrusted: bytes that are missing, damaged, too large
// or not an image become a labelled placeholder, and never fail the run.
//
// A picture is decoded once, and kept no larger than the frame needs it. Whether decoding is affordable is judged
// before, by the header alone: 1 kB of AVIF can be 67 megapixels, which take 1.2 GB.

import { readFile } from 'node:fs/promises'
import type { Metadata, OverlayOptions } from 'sharp'
import { hex } from './colour.js'
import type { Font } from './lettering/font.js'
import type { Palette } from './palette.js'
import type { Size } from './render-request.js'
import { box, path, pixels } from './scenery/stage.js'

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

export const MAX_PIXELS = 100_000_000
/** Of one reference. */
export const MAX_COST = 134_000_000
/** Of all references of a run: fourteen photographs of 50 megapixels. */
const MAX_TOTAL_COST = 700_000_000

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

/** What sharp composites, back to front, onto a canvas of `size` pixels; `side` as in cards.ts. */
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

/** Shares of the frame that the prints may take: below the mark, above the caption. */
const ROOM = { side: 0.05, top: 0.13, bottom: 0.76 } as const
const GAP = 0.03
/** How much higher than its share of the room a row may be. */
const MAX_ROW_SHARE = 1.5

/**
 * One rectangle per image, in the unit of `width` and `height`, keeping each image's own ratio (width / height) and their
 * order. Of all numbers of rows, which share the images evenly, the one wins in which the smallest is largest. `side` is
 * the share of the width that stays free on either side.
 */
export function placeCards(
  width: number,
  height: number,
  ratios: readonly number[],
  side: number = ROOM.side,
): Card[] {
  // Ratios beyond 4:1 are cropped: a strip of 20:1 would be a line.
  const shapes = ratios.map((ratio) => Math.min(4, Math.max(0.25, ratio)))
  const room = { width: (1 - 2 * side) * width, height: (ROOM.bottom - ROOM.top) * height }
  const gap = GAP * Math.min(width, height)
  const layouts = shapes.map((_, index) => rowsOf(shapes, index + 1, room, gap))
  const lowest = (rows: readonly Row[]) => Math.min(...rows.map((row) => row.height))
  const best = layouts.reduce((one, other) => (lowest(other) > lowest(one) ? other : one), layouts[0] ?? [])
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
    const own = shapes.slice(ends[row], end)
    const widest = (room.width - gap * (own.length - 1)) / sumOf(own)
    return { shapes: own, height: Math.min((free / count) * MAX_ROW_SHARE, widest) }
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
