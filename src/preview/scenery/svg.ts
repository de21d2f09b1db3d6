// A drawing in stage units becomes an SVG document of exact pixel size, and sharp, which turns it into pixels, is set
// up once.
import type Sharp from 'sharp'
import type { Size } from '../sizes.js'

export function stageSvg(size: Size, stage: Size, drawing: string): Buffer {
  const view = `viewBox="0 0 ${stage.width} ${stage.height}" preserveAspectRatio="none"`
  return Buffer.from(
    `<svg xmlns="http://www.w3.org/2000/svg" width="${size.width}" height="${size.height}" ${view}>${drawing}</svg>`,
  )
}

/** sharp, loaded at the first picture. Its cache is off: no drawing comes twice, and it would only hold memory. */
export async function pixels(): Promise<typeof Sharp> {
  const { default: sharp } = await import('sharp')
  sharp.cache(false)
  return sharp
}
