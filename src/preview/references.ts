// Draws the reference images as prints. The images are untrusted: a missing, corrupt or too large file, or a file that
// is not an image, becomes a labelled placeholder and does not fail the run.
import { readFile } from 'node:fs/promises'
import { drawCard, type Overlay, printOf } from './lettering.js'
import { openPicture } from './open-picture.js'
import type { Palette } from './palette.js'
import { type Area, centred, even, type Size } from './size.js'

/** Draws the reference files in rows within `area`, each in its own shape. */
export async function drawPrints(
  references: readonly (string | undefined)[],
  area: Area,
  palette: Palette,
): Promise<Overlay[]> {
  const count = references.length
  const columns = Math.max(1, Math.min(count, Math.round(Math.sqrt((count * area.width) / area.height))))
  const [width, height] = [area.width / columns, area.height / Math.ceil(count / columns)]
  const gap = Math.min(width, height) * 0.1
  const prints: Overlay[] = []
  // One after the other: fourteen photographs at once would take almost a gigabyte.
  for (const [index, file] of references.entries()) {
    const room = { width: width - gap, height: height - gap }
    const print = await drawPrint(file ?? '', room, palette).catch(() =>
      drawCard(room, palette, `reference ${index + 1} could not be shown`),
    )
    const left = area.left + (index % columns) * width
    prints.push(centred(print, { left, top: area.top + Math.floor(index / columns) * height, width, height }))
  }
  return prints
}

/** Decodes a picture to the size of its print. A preview is shown without its caption. */
async function drawPrint(file: string, room: Size, palette: Palette) {
  // Bytes instead of the path: libvips has fewer decoders for them.
  const { picture, exif, ...whole } = await openPicture(await readFile(file))
  const [, clear = 1] = new RegExp(`${MARK} (0\\.[5-9]\\d+)`).exec(exif?.toString('latin1') ?? '') ?? []
  const height = Math.max(1, Math.floor(whole.height * Number(clear)))
  const border = even(Math.min(room.width, room.height) * 0.02)
  // Ratios above 4:1 are cropped, because an image of 20:1 would look like a line.
  const shape = Math.min(4, Math.max(0.25, whole.width / height))
  const width = Math.min(room.width - 2 * border, (room.height - 2 * border) * shape)
  const edges = { top: border, bottom: border, left: border, right: border }
  return printOf(
    picture
      .extract({ left: 0, top: 0, width: whole.width, height })
      .resize({ width: even(width) || 2, height: even(width / shape) || 2, fit: 'cover' })
      .flatten({ background: '#ffffff' })
      .toColourspace('srgb')
      .extend({ ...edges, background: palette.paper }),
  )
}

const MARK = 'rushes preview'

/** Returns the mark in the metadata of a preview: the share of its height above the caption. */
export const previewMark = (clear: number): string => `${MARK} ${clear.toFixed(3)}`
