// Draws the reference images as prints. The images are untrusted: a missing, corrupt or too large file, or a file that
// is not an image, becomes a labelled placeholder and does not fail the run.
import { readFile } from 'node:fs/promises'
import { drawCard, type Overlay } from './lettering.js'
import { openPicture } from './open-picture.js'
import type { Palette } from './palette.js'
import { type Area, centred, even, type Size } from './size.js'

/** Draws the reference files in rows within `area`, each in its own shape. */
export async function drawPrints(
  references: readonly (string | undefined)[],
  area: Area,
  palette: Palette,
): Promise<Overlay[]> {
  const columns = Math.min(
    references.length,
    Math.max(1, Math.round(Math.sqrt((references.length * area.width) / area.height))),
  )
  const [across, down] = [area.width / columns, area.height / Math.ceil(references.length / columns)]
  const gap = Math.min(across, down) * 0.05
  const room = { width: across - 2 * gap, height: down - 2 * gap }
  const prints: Overlay[] = []
  // One after the other: fourteen photographs at once would take almost a gigabyte.
  for (const [index, file] of references.entries()) {
    const print = await drawPrint(file, room, palette).catch(() =>
      drawCard(room, palette, `reference ${index + 1} could not be shown`),
    )
    const [column, row] = [index % columns, Math.floor(index / columns)]
    // The last row is centred.
    const inRow = Math.min(columns, references.length - row * columns)
    const left = area.left + area.width / 2 + (column - inRow / 2) * across
    prints.push(centred(print, { left, top: area.top + row * down, width: across, height: down }))
  }
  return prints
}

/** Decodes a picture to the size of its print. A preview is shown without its caption. */
async function drawPrint(file: string | undefined, room: Size, palette: Palette) {
  // Bytes instead of the path: libvips has fewer decoders for them.
  const { picture, exif, ...whole } = await openPicture(
    file === undefined ? Buffer.alloc(0) : await readFile(file),
  )
  const height = Math.max(1, Math.floor(whole.height * clearShare(exif)))
  if (height < whole.height) picture.extract({ left: 0, top: 0, width: whole.width, height })
  const border = even(Math.min(room.width, room.height) * 0.02)
  // Ratios above 4:1 are cropped, because an image of 20:1 would look like a line.
  const shape = Math.min(4, Math.max(0.25, whole.width / height))
  const width = Math.min(room.width - 2 * border, (room.height - 2 * border) * shape)
  const print = { width: Math.max(2, even(width)), height: Math.max(2, even(width / shape)) }
  const { data, info } = await picture
    .resize({ ...print, fit: 'cover' })
    .flatten({ background: '#ffffff' })
    .toColourspace('srgb')
    .extend({ top: border, bottom: border, left: border, right: border, background: palette.paper })
    .png({ compressionLevel: 0 })
    .toBuffer({ resolveWithObject: true })
  return { input: data, width: info.width, height: info.height }
}

const MARK = 'rushes preview'

/** Returns the mark in the metadata of a preview: the share of its height above the caption. */
export const previewMark = (clear: number): string => `${MARK} ${clear.toFixed(3)}`

/** Returns the share of an image above the caption of a preview. */
function clearShare(exif: Buffer | undefined): number {
  const [, share] = new RegExp(`${MARK} (0\\.\\d{3})`).exec(exif?.toString('latin1') ?? '') ?? []
  return Number(share) > 0.5 ? Number(share) : 1
}
