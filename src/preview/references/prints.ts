// ReferenceImage images laid onto a scene: one alone fills the frame, several lie on it as prints.
import type { OverlayOptions } from 'sharp'
import { hex } from '../colour.js'
import type { Font } from '../lettering/font.js'
import type { Palette } from '../palette.js'
import { box, path } from '../scenery/drawing.js'
import type { Size } from '../sizes.js'
import { placeCards } from './cards.js'
import type { ReferenceImage } from './open-references.js'

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
      `<rect x="${x - border * 0.4}" y="${y + border}" width="${width + border * 1.6}" height="${height + border * 1.6}" ` +
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
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${size.width}" height="${size.height}">${drawing}</svg>`
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
