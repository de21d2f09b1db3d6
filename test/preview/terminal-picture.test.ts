/** Pictures of all kinds, hostile ones too, as codes for a terminal. First frames of videos: test/cli/pictures.system.ts. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import sharp from 'sharp'
import { expect, test } from 'vitest'
import { drawPicture, type PictureRequest } from '../../src/preview/terminal-picture.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { plainPicture } from './support/pictures.js'

const teal = (width: number, height: number) => plainPicture('#008080', width, height)

function draw(bytes: Uint8Array, request: Partial<PictureRequest>): Promise<string> {
  const path = join(temporaryFolder(), 'picture')
  writeFileSync(path, bytes)
  const form = { protocol: 'half blocks', width: 60, height: 60, isTrueColour: true, isVideo: false } as const
  return drawPicture({ path, ...form, ...request }, '')
}

test.each([
  [
    'a JPEG in CMYK, turned',
    () => teal(60, 90).toColourspace('cmyk').jpeg().withMetadata({ orientation: 6 }),
    60,
    40,
  ],
  ['a large WebP', () => teal(800, 160).webp(), 60, 12],
])('draws %s within the size of the terminal', async (_, make, width, height) => {
  const lines = (await draw(await make().toBuffer(), {})).trimEnd().split('\n')
  expect(lines).toHaveLength(height / 2)
  expect(lines[0]?.match(/▀/g)).toHaveLength(width)
  const [, ...parts] = /38;2;(\d+);(\d+);(\d+)/.exec(lines[0] ?? '') ?? []
  for (const [index, wanted] of [0, 128, 128].entries())
    expect(Math.abs(Number(parts[index]) - wanted)).toBeLessThan(8)
})

test('sends kitty and iTerm2 a PNG of the reduced size', async () => {
  const noise = { type: 'gaussian', sigma: 60, mean: 128 } as const
  const bytes = await sharp({ create: { width: 120, height: 90, channels: 3, background: 'teal', noise } })
    .jpeg()
    .toBuffer()
  for (const protocol of ['kitty', 'iterm2'] as const) {
    const codes = await draw(bytes, { protocol })
    const base64 = codes.replaceAll(/\u001b(_G[^;]*;|\]1337;[^:]*:|\\)|[\u0007\n]/g, '')
    expect(await sharp(Buffer.from(base64, 'base64')).metadata()).toMatchObject({
      format: 'png',
      width: 60,
      height: 45,
    })
  }
})

// The other refusals are those of a thumbnail: thumbnail.test.ts.
test.each([
  [
    'half a PNG',
    async () => (await teal(300, 300).png().toBuffer()).subarray(0, 200),
    'the picture is corrupt',
  ],
  ['escape codes', () => Buffer.from('\u001b]0;title\u0007'), 'unknown or damaged picture format'],
  ['65 MiB', () => Buffer.alloc(65 * 1_048_576), 'it is larger than 64 MiB'],
])('refuses %s with its reason', async (_, make, reason) => {
  await expect(draw(await make(), {})).rejects.toThrow(reason)
})

test('refuses a video without ffmpeg', async () => {
  await expect(draw(Buffer.from('film'), { isVideo: true })).rejects.toThrow(
    'its first frame needs ffmpeg on PATH',
  )
})
