/** Pictures of all kinds, hostile ones too, as codes for a terminal. First frames of videos: test/cli/pictures.system.ts. */
import { chmod, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import sharp from 'sharp'
import { expect, test } from 'vitest'
import {
  drawPicture,
  findFfmpeg,
  halfBlocks,
  type PictureRequest,
} from '../../src/preview/terminal-picture.js'
import { temporaryFolder } from '../support/index.js'
import { teal } from './support/pictures.js'

async function draw(bytes: Uint8Array, request: Partial<PictureRequest>): Promise<string> {
  const path = join(temporaryFolder(), 'picture')
  await writeFile(path, bytes)
  const form = { protocol: 'half blocks', width: 60, height: 60, isVideo: false } as const
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

test('sends kitty and iTerm2 a PNG of the reduced size: kitty in chunks of 4096 characters, without a reply', async () => {
  const noise = { type: 'gaussian', sigma: 60, mean: 128 } as const
  const create = { width: 120, height: 90, channels: 3, background: 'teal', noise } as const
  const bytes = await sharp({ create }).jpeg().toBuffer()
  const [kitty, iterm2] = [
    await draw(bytes, { protocol: 'kitty' }),
    await draw(bytes, { protocol: 'iterm2' }),
  ]
  const chunks = [...kitty.matchAll(/\u001b_G([^;]*);([^\u001b]*)\u001b\\/g)]
  const more = chunks.slice(1, -1).map(() => 'm=1')
  expect(chunks.map(([, keys]) => keys)).toEqual(['a=T,f=100,q=2,m=1', ...more, 'm=0'])
  expect(chunks.slice(0, -1).every(([, , text]) => text?.length === 4_096)).toBe(true)
  expect(kitty).toBe(`${chunks.map(([whole]) => whole).join('')}\n`)
  const [, size, base64 = ''] = /^\u001b\]1337;File=inline=1;size=(\d+):(.*)\u0007\n$/.exec(iterm2) ?? []
  expect(base64).toBe(chunks.map(([, , text]) => text).join(''))
  const png = Buffer.from(base64, 'base64')
  expect(png).toHaveLength(Number(size))
  expect(await sharp(png).metadata()).toMatchObject({ format: 'png', width: 60, height: 45 })
})

const [RED, BLUE] = [
  [255, 0, 0],
  [0, 0, 255],
]

test('half blocks show two pixels each, and write codes only where a colour changes', () => {
  const rows = [RED, RED, BLUE, BLUE, BLUE, BLUE, RED, RED, RED]
  const picture = { width: 3, height: 3, data: Uint8Array.from(rows.flat() as number[]) }
  expect(halfBlocks(picture)).toBe(
    '\u001b[38;2;255;0;0;48;2;0;0;255m▀▀\u001b[38;2;0;0;255;48;2;0;0;255m▀\u001b[0m\n' +
      '\u001b[38;2;255;0;0;49m▀▀▀\u001b[0m\n',
  )
})

// The other refusals are those of a thumbnail: thumbnail.test.ts.
test.each([
  ['escape codes', () => Buffer.from('\u001b]0;title\u0007'), {}, 'unknown or damaged picture format'],
  ['65 MiB', () => Buffer.alloc(65 * 1_048_576), {}, 'it is larger than 64 MiB'],
  [
    'a video without ffmpeg',
    () => Buffer.from('film'),
    { isVideo: true },
    'its first frame needs ffmpeg on PATH',
  ],
])('refuses %s with its reason', async (_, make, request, reason) => {
  await expect(draw(await make(), request)).rejects.toThrow(reason)
})

test('ffmpeg is found only in absolute folders', async () => {
  const folder = temporaryFolder()
  await writeFile(join(folder, 'ffmpeg'), '#!/bin/sh\n')
  await chmod(join(folder, 'ffmpeg'), 0o755)
  expect(findFfmpeg(['', '.', 'bin', folder].join(delimiter))).toBe(join(folder, 'ffmpeg'))
  expect([undefined, '/nowhere'].map((path) => findFfmpeg(path))).toEqual([undefined, undefined])
})
