// Pictures side by side in one image, for the docs. Each line of pictures has one height; labels are optional.
import sharp from 'sharp'

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
const LABEL_HEIGHT = 22
const FONT_FILE = 'node_modules/@expo-google-fonts/inter/500Medium/Inter_500Medium.ttf'

/** Writes a JPEG, or a PNG if the name of the target says so. */
export async function writeContactSheet(
  target: string,
  lines: readonly (readonly Tile[])[],
  { height, ratio, quality = 82 }: SheetOptions,
): Promise<void> {
  const hasLabels = lines.flat().some(({ label }) => label !== undefined)
  const lineHeight = height + GAP + (hasLabels ? LABEL_HEIGHT : 0)
  const placed: { readonly input: Buffer; readonly left: number; readonly top: number }[] = []
  let right = 0
  for (const [index, line] of lines.entries()) {
    const top = GAP + index * lineHeight
    let left = GAP
    for (const { image, label } of line) {
      const { width: fullWidth, height: fullHeight } = await sharp(image).metadata()
      const width = Math.round(height * (ratio ?? fullWidth / fullHeight))
      placed.push({ input: await sharp(image).resize(width, height, { fit: 'fill' }).toBuffer(), left, top })
      if (label !== undefined)
        placed.push({ input: await drawLabel(label, width), left, top: top + height + 3 })
      left += width + GAP
    }
    right = Math.max(right, left)
  }
  const size = { width: right, height: GAP + lines.length * lineHeight }
  const sheet = sharp({ create: { ...size, channels: 3, background: '#ffffff' } }).composite(placed)
  await (target.endsWith('.png') ? sheet.png() : sheet.jpeg({ quality, mozjpeg: true })).toFile(target)
}

function drawLabel(label: string, width: number): Promise<Buffer> {
  const text = `<span foreground="#333">${label.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`)}</span>`
  const markup = { text, font: 'Inter Medium 13px', fontfile: FONT_FILE, rgba: true, wrap: 'none' } as const
  return sharp({ text: markup }).resize({ width, withoutEnlargement: true }).png().toBuffer()
}
