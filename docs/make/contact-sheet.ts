// Pictures side by side in one JPEG, for the docs. Each line of pictures has one height; labels are optional.
import sharp from 'sharp'
import { loadFont } from '../../src/preview/lettering/font.js'

export interface Tile {
  readonly image: Buffer
  readonly label?: string
}

export interface SheetOptions {
  /** Height of the pictures in pixels. */
  readonly height: number
  /** Shape of all pictures as width to height. Default: their own. */
  readonly ratio?: number
  readonly quality?: number
}

const GAP = 8
const LABEL_SIZE = 13
const LABEL_HEIGHT = 22

export async function writeContactSheet(
  target: string,
  lines: readonly (readonly Tile[])[],
  { height, ratio, quality = 82 }: SheetOptions,
): Promise<void> {
  const font = await loadFont('')
  const hasLabels = lines.flat().some(({ label }) => label !== undefined)
  const lineHeight = height + GAP + (hasLabels ? LABEL_HEIGHT : 0)
  const placed: { readonly input: Buffer; readonly left: number; readonly top: number }[] = []
  const labels: string[] = []
  let right = 0
  for (const [index, line] of lines.entries()) {
    const top = GAP + index * lineHeight
    let left = GAP
    for (const { image, label } of line) {
      const { width: fullWidth, height: fullHeight } = await sharp(image).metadata()
      const width = Math.round(height * (ratio ?? fullWidth / fullHeight))
      placed.push({ input: await sharp(image).resize(width, height, { fit: 'fill' }).toBuffer(), left, top })
      if (label !== undefined) {
        const size = Math.min(LABEL_SIZE, (LABEL_SIZE * width) / font.width(label, LABEL_SIZE))
        labels.push(font.outline(label, left, top + height + LABEL_SIZE + 4, size))
      }
      left += width + GAP
    }
    right = Math.max(right, left)
  }
  const size = { width: right, height: GAP + lines.length * lineHeight }
  const text =
    `<svg xmlns="http://www.w3.org/2000/svg" width="${size.width}" height="${size.height}">` +
    `<path d="${labels.join('')}" fill="#333"/></svg>`
  await sharp({ create: { ...size, channels: 3, background: '#ffffff' } })
    .composite([...placed, { input: Buffer.from(text), left: 0, top: 0 }])
    .jpeg({ quality, mozjpeg: true })
    .toFile(target)
}
