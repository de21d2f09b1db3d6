import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32, deflateSync } from 'node:zlib'
import sharp from 'sharp'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { createThumbnailEngine } from '../../src/preview/thumbnail.js'
import type { Engine, RenderJob } from '../../src/service/engines/engine.js'
import { createProcessEngine } from '../../src/service/engines/process.js'
import { built } from '../support/built.js'
import { temporaryFolder } from '../support/service.js'

const teal = (width: number, height: number) =>
  sharp({ create: { width, height, channels: 3, background: '#008080' } })

function chunk(type: string, data: Uint8Array): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const ends = Buffer.alloc(8)
  ends.writeUInt32BE(data.length, 0)
  ends.writeUInt32BE(crc32(named), 4)
  return Buffer.concat([ends.subarray(0, 4), named, ends.subarray(4)])
}

/** A PNG that is complete: grey, with all of its pixels, in a thousandth of their size. */
function pngBomb(side: number): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(side, 0)
  header.writeUInt32BE(side, 4)
  header[8] = 8
  const row = Buffer.alloc(side + 1)
  const body = deflateSync(Buffer.concat(Array.from({ length: side }, () => row)))
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', header),
    chunk('IDAT', body),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

const SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><image href="/etc/passwd"/></svg>'

/** The name is what it is called; none of them is what it says. */
const HOSTILE: readonly (readonly [string, () => Buffer | Promise<Buffer>])[] = [
  ['a PNG bomb of 121 megapixels', () => pngBomb(11_000)],
  ['a PNG that claims 4 gigapixels', async () => claiming(await teal(8, 8).png().toBuffer(), 65_000)],
  ['an interlaced PNG of 16 bits', () => wide()],
  ['half a PNG', async () => half(await noise().png().toBuffer())],
  ['half a JPEG', async () => half(await noise().jpeg().toBuffer())],
  ['half a WebP', async () => half(await noise().webp().toBuffer())],
  ['an SVG', () => Buffer.from(SVG)],
  ['a script', () => Buffer.from('<script>alert(1)</script>')],
  ['a BMP', () => Buffer.from('BM\x46\0\0\0\0\0\0\0\x36\0\0\0', 'latin1')],
  ['nothing', () => Buffer.alloc(0)],
]

const half = (bytes: Buffer): Buffer => bytes.subarray(0, bytes.length >> 1)

const noise = () =>
  sharp({
    create: {
      width: 640,
      height: 480,
      channels: 3,
      background: 'teal',
      noise: { type: 'gaussian', sigma: 30 },
    },
  })

const wide = () => teal(5_000, 5_000).toColourspace('rgb16').png({ progressive: true }).toBuffer()

function claiming(png: Buffer, side: number): Buffer {
  png.writeUInt32BE(side, 16)
  png.writeUInt32BE(side, 20)
  png.writeUInt32BE(crc32(png.subarray(12, 29)), 29)
  return png
}

async function jobOf(bytes: Uint8Array): Promise<RenderJob> {
  const folder = temporaryFolder()
  const path = join(folder, 'picture.png')
  await writeFile(path, bytes)
  return { kind: 'image', input: { path }, folder, references: [], signal: new AbortController().signal }
}

async function made(engine: Engine, bytes: Uint8Array) {
  const job = await jobOf(bytes)
  const [file] = await engine.render(job)
  expect(file).toEqual({ name: 'thumbnail.webp', contentType: 'image/webp' })
  return sharp(join(job.folder, 'thumbnail.webp'))
}

let script: string
beforeAll(async () => {
  script = await built(new URL('../../src/preview/thumbnailer.ts', import.meta.url))
})

test.each([
  ['a 4K PNG', () => teal(3_840, 2_160).png(), 160, 90],
  ['a tall JPEG', () => teal(1_000, 2_000).jpeg(), 80, 160],
  ['a photograph that was turned', () => teal(600, 400).jpeg().withMetadata({ orientation: 6 }), 107, 160],
  ['an interlaced PNG', () => teal(1_200, 1_200).png({ progressive: true }), 160, 160],
  ['a GIF', () => teal(320, 200).gif(), 160, 100],
  ['an AVIF', () => teal(320, 200).avif({ effort: 0 }), 160, 100],
  ['a small picture, which stays as it is', () => teal(40, 30).webp(), 40, 30],
  ['a strip', () => teal(6_000, 2).png(), 160, 1],
])('%s', async (_, make, width, height) => {
  const small = await made(createThumbnailEngine(), await make().toBuffer())
  expect(await small.metadata()).toMatchObject({ format: 'webp', width, height })
  expect(await small.metadata()).not.toHaveProperty('exif')
  const { channels } = await small.stats()
  for (const [index, wanted] of [0, 128, 128].entries())
    expect(Math.abs((channels[index]?.mean ?? 0) - wanted)).toBeLessThan(5)
})

test('keeps what is transparent', async () => {
  const clear = sharp({ create: { width: 300, height: 300, channels: 4, background: '#00000000' } })
  const small = await made(createThumbnailEngine(), await clear.png().toBuffer())
  expect((await small.metadata()).hasAlpha).toBe(true)
})

test('the same picture gives the same bytes', async () => {
  const bytes = await noise().png().toBuffer()
  const sums = [1, 2].map(async () =>
    createHash('sha256')
      .update(await (await made(createThumbnailEngine(), bytes)).toBuffer())
      .digest('hex'),
  )
  expect(new Set(await Promise.all(sums)).size).toBe(1)
})

test('in its process, hostile pictures are refused, and the process stays', async () => {
  const engine = createProcessEngine({ script })
  onTestFinished(() => engine.close())
  const sound = await noise().png().toBuffer()
  await made(engine, sound)
  for (const [name, bytes] of HOSTILE) {
    const error = await engine.render(await jobOf(await bytes())).catch((thrown) => thrown)
    // Of the engine itself, and not because its process ended.
    expect([name, error?.constructor]).toEqual([name, Error])
  }
  const small = await made(engine, sound)
  expect(await small.metadata()).toMatchObject({ width: 160, height: 120 })
})
