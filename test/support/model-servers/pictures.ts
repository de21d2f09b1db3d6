/** Real small pictures, for servers that draw nothing. */
import { createHash } from 'node:crypto'
import { crc32, deflateSync } from 'node:zlib'

function chunk(type: string, data: Buffer): Buffer {
  const bytes = Buffer.alloc(data.byteLength + 12)
  bytes.writeUInt32BE(data.byteLength)
  bytes.write(type, 4, 'latin1')
  data.copy(bytes, 8)
  bytes.writeUInt32BE(crc32(bytes.subarray(4, -4)), bytes.byteLength - 4)
  return bytes
}

/** Returns a PNG of this size in one colour, which depends on `subject`. */
export function pngOf(width: number, height: number, subject: unknown): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width)
  header.writeUInt32BE(height, 4)
  // Eight bits a channel, with a palette.
  header.writeUInt8(8, 8)
  header.writeUInt8(3, 9)
  const colour = createHash('sha256').update(JSON.stringify(subject)).digest().subarray(0, 3)
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', header),
    chunk('PLTE', colour),
    chunk('IDAT', deflateSync(Buffer.alloc((width + 1) * height))),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

/** Returns width and height in the header of a PNG. */
export const sizeOfPng = (png: Buffer): string => `${png.readUInt32BE(16)}x${png.readUInt32BE(20)}`
