import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import sharp from 'sharp'
import { describe, expect, it } from 'vitest'
import { pictureSizeOf } from '../../src/preview/open-picture.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const create = () => sharp({ create: { width: 40, height: 30, channels: 3, background: 'teal' } })

/** Written to a file and read again. */
function sizeOf(bytes: Uint8Array | string) {
  const path = join(temporaryFolder(), 'picture')
  writeFileSync(path, bytes)
  return pictureSizeOf(path)
}

describe('the size of a picture', () => {
  it('follows the orientation of a photograph', async () => {
    const turned = await create().jpeg().withMetadata({ orientation: 6 }).toBuffer()
    expect(await sizeOf(turned)).toEqual({ width: 30, height: 40 })
  })

  it('stands behind a long profile too', async () => {
    const jpeg = await create().jpeg().toBuffer()
    const comment = Buffer.alloc(60_000)
    const segment = Buffer.concat([
      Buffer.from([0xff, 0xfe, (comment.length + 2) >> 8, (comment.length + 2) & 255]),
      comment,
    ])
    const long = Buffer.concat([jpeg.subarray(0, 2), segment, segment, jpeg.subarray(2)])
    expect(await sizeOf(long)).toEqual({ width: 40, height: 30 })
  })

  it('is undefined for what is not a picture', async () => {
    expect(await sizeOf('')).toBeUndefined()
    expect(await sizeOf('<svg width="1" height="1"/>')).toBeUndefined()
    expect(await sizeOf((await create().png().toBuffer()).subarray(0, 20))).toBeUndefined()
    expect(await pictureSizeOf('/nosuch/file.png')).toBeUndefined()
  })
})
