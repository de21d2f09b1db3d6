/** Loads of test/proof/abuse.proof.ts with reference images: many images, and small files with huge dimensions. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import sharp from 'sharp'
import {
  create,
  createBody,
  ended,
  type Figures,
  IMAGE_MODEL,
  type Target,
  tally,
  VIDEO_MODEL,
} from './requests.js'

const colored = (width: number, height: number) =>
  sharp({ create: { width, height, channels: 3, background: '#336699' }, limitInputPixels: false })

/** One create with 200,000 image URLs, and several creates with fourteen. The image server counts its requests. */
export async function manyReferences(target: Target): Promise<Figures> {
  const picture = await colored(8, 8).png().toBuffer()
  let requests = 0
  const server = createServer((_request, response) => {
    requests++
    response.writeHead(200, { 'content-type': 'image/png' }).end(picture)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const addresses = (count: number) =>
    Array.from({ length: count }, (_, index) => `http://127.0.0.1:${port}/${index}`)
  const [key = ''] = target.keys
  const outcomes: string[] = []
  for (const model of [VIDEO_MODEL, IMAGE_MODEL])
    for (const count of [200_000, 15]) {
      const body = createBody(model, { prompt: 'a fox', image_urls: addresses(count) })
      outcomes.push((await create(target, key, body)).outcome)
    }
  const beforeAccepted = requests
  const runs = await Promise.all(
    [VIDEO_MODEL, IMAGE_MODEL].map((model) =>
      create(target, key, createBody(model, { prompt: 'a fox', image_urls: addresses(14) })),
    ),
  )
  outcomes.push(...runs.map(({ outcome }) => outcome))
  for (const { body } of runs) if (body?.id !== undefined) outcomes.push(await ended(target, key, body.id))
  server.closeAllConnections()
  server.close()
  return {
    ...tally(outcomes),
    'requests for refused creates': beforeAccepted,
    'requests for 2 creates of 14': requests - beforeAccepted,
  }
}

/** Creates different files with the same image: bytes after the end of an image are ignored. */
const different = (image: Buffer, count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => {
    const bytes = Buffer.concat([image, Buffer.from(String(index))])
    return bytes.toString('base64')
  })

async function withReferences(
  target: Target,
  type: string,
  image: Buffer,
  counts: readonly number[],
): Promise<Figures> {
  const [key = ''] = target.keys
  const startedAt = performance.now()
  const runs = await Promise.all(
    counts.map((count) =>
      create(
        target,
        key,
        createBody(IMAGE_MODEL, {
          prompt: 'a fox',
          image_urls: different(image, count).map((data) => `data:${type};base64,${data}`),
        }),
      ),
    ),
  )
  const ends = await Promise.all(
    runs.map(({ outcome, body }) => (body?.id === undefined ? outcome : ended(target, key, body.id))),
  )
  return {
    ...tally(ends),
    'bytes of one image': image.byteLength,
    'seconds until all ended': Math.round((performance.now() - startedAt) / 100) / 10,
  }
}

export async function avifBombs(target: Target): Promise<Figures> {
  const image = await colored(8_192, 8_192).avif({ effort: 0, quality: 1 }).toBuffer()
  return await withReferences(target, 'image/avif', image, [1, 1, 14])
}

export async function interlacedPngs(target: Target): Promise<Figures> {
  const image = await colored(4_096, 4_096).toColourspace('rgb16').png({ progressive: true }).toBuffer()
  return await withReferences(target, 'image/png', image, [14])
}
