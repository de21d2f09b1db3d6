import { crc32 } from 'node:zlib'
import sharp, { type Sharp } from 'sharp'

/** A picture of one colour. */
export const plainPicture = (background: string, width: number, height: number): Sharp =>
  sharp({ create: { width, height, channels: 3, background } })

export const teal = (width: number, height: number): Sharp => plainPicture('#008080', width, height)

/** An interlaced 16-bit PNG whose header claims to be this large. */
export async function claimingPng(width: number, height: number): Promise<Buffer> {
  const small = plainPicture('#ff00ff', 8, 8).toColourspace('rgb16')
  const png = await small.png({ progressive: true }).toBuffer()
  png.writeUInt32BE(width, 16)
  png.writeUInt32BE(height, 20)
  png.writeUInt32BE(crc32(png.subarray(12, 29)), 29)
  return png
}
