import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { pictureSizeOf } from '../../src/preview/files.js'
import { temporaryFolder } from '../support/index.js'
import { teal } from './support/pictures.js'

/** Written to a file and read again. */
function sizeOf(bytes: Uint8Array | string) {
  const path = join(temporaryFolder(), 'picture')
  writeFileSync(path, bytes)
  return pictureSizeOf(path)
}

it('the size of a picture follows the orientation of a photograph', async () => {
  const turned = await teal(40, 30).jpeg().withMetadata({ orientation: 6 }).toBuffer()
  expect(await sizeOf(turned)).toEqual({ width: 30, height: 40 })
})

it('the size of a picture is undefined for what is not a picture', async () => {
  expect(await sizeOf('')).toBeUndefined()
  expect(await sizeOf('<svg width="1" height="1"/>')).toBeUndefined()
  expect(await sizeOf((await teal(40, 30).png().toBuffer()).subarray(0, 20))).toBeUndefined()
  expect(await pictureSizeOf('/nosuch/file.png')).toBeUndefined()
})
