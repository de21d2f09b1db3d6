import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import sharp from 'sharp'
import { expect, onTestFinished, test } from 'vitest'
import { createThumbnailEngine } from '../../src/preview/thumbnail.js'
import type { Engine, RenderJob } from '../../src/service/engines/engine.js'
import { createProcessEngine } from '../../src/service/engines/process.js'
import { DIST, temporaryFolder } from '../support/index.js'
import { claimingPng, teal } from './support/pictures.js'

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

const half = (bytes: Buffer): Buffer => bytes.subarray(0, bytes.length >> 1)

const SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><image href="/etc/passwd"/></svg>'

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

test.each([
  ['a 4K PNG', () => teal(3_840, 2_160).png(), 384, 216],
  ['a photograph that was turned', () => teal(600, 400).jpeg().withMetadata({ orientation: 6 }), 256, 384],
  ['an AVIF', () => teal(768, 480).avif({ effort: 0 }), 384, 240],
  ['a small picture, which stays as it is', () => teal(40, 30).webp(), 40, 30],
])('makes a thumbnail of %s', async (_, make, width, height) => {
  const small = await made(createThumbnailEngine(), await make().toBuffer())
  expect(await small.metadata()).toMatchObject({ format: 'webp', width, height })
  expect(await small.metadata()).not.toHaveProperty('exif')
  const { channels } = await small.stats()
  for (const [index, wanted] of [0, 128, 128].entries())
    expect(Math.abs((channels[index]?.mean ?? 0) - wanted)).toBeLessThan(5)
})

// By what their header says, or by sharp, in its own words.
test.each<[string, () => Buffer | Promise<Buffer>, string]>([
  ['a PNG of 121 megapixels', () => claimingPng(11_000, 11_000), 'the picture has too many pixels'],
  ['half a PNG', async () => half(await noise().png().toBuffer()), 'libpng read error'],
  ['an SVG', () => Buffer.from(SVG), 'unknown or damaged picture format'],
  ['nothing', () => Buffer.alloc(0), 'unknown or damaged picture format'],
])('refuses %s', async (_, bytes, reason) => {
  await expect(createThumbnailEngine().render(await jobOf(await bytes()))).rejects.toThrow(reason)
})

test('a picture that its process refuses is an error of the picture, and not of the process', async () => {
  const engine = createProcessEngine({ script: join(DIST, 'thumbnailer.cjs') })
  onTestFinished(() => engine.close())
  const refused = await engine
    .render(await jobOf(half(await noise().jpeg().toBuffer())))
    .catch((thrown) => thrown)
  expect(refused?.constructor).toBe(Error)
  const small = await made(engine, await noise().png().toBuffer())
  expect(await small.metadata()).toMatchObject({ width: 384, height: 288 })
})
