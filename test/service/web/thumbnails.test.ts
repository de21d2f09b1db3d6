/** Thumbnails: what they are, who gets them, and what a decoder that is broken or compromised cannot do. */
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import sharp from 'sharp'
import { expect, test } from 'vitest'
import { createThumbnailEngine } from '../../../src/preview/thumbnail.js'
import type { Engine, RenderJob } from '../../../src/service/engines/engine.js'
import { createInConsole, load, signedIn } from '../../support/console.js'
import type { InstantEngineOptions } from '../../support/engines.js'
import { createInstantEngine, ended, temporaryFolder } from '../../support/index.js'

const PICTURE = await sharp({ create: { width: 640, height: 320, channels: 3, background: 'teal' } })
  .png()
  .toBuffer()

/** A service with a run that has ended, and a way to ask for its thumbnail. */
async function createThumbnail(
  output: InstantEngineOptions = {},
  render: Engine['render'] = createThumbnailEngine().render,
) {
  const jobs: RenderJob[] = []
  const { service, browser } = await signedIn({
    rendering: true,
    engine: createInstantEngine({ bytes: PICTURE, ...output }),
    thumbnailEngine: {
      render(job) {
        jobs.push(job)
        return render(job)
      },
    },
  })
  const id = await createInConsole(browser)
  await ended(service, id)
  const cookie = `rushes_session=${browser.cookie}`
  const read = (headers = {}) => load(service, `/runs/${id}/thumbnail`, { cookie, ...headers })
  return { service, browser, jobs, read }
}

test('a thumbnail is a small WebP that the browser caches', async () => {
  const { browser, read } = await createThumbnail()
  expect((await browser.get('/runs')).body).toMatch(/<img src="\/runs\/run_\w+\/thumbnail" alt/)
  const { status, header, bytes } = await read()
  expect([status, header('content-type'), header('cache-control')]).toEqual([
    200,
    'image/webp',
    'private, max-age=31536000, immutable',
  ])
  expect(await sharp(bytes).metadata()).toMatchObject({ format: 'webp', width: 384, height: 192 })
})

test('the thumbnail of a removed file is 410', async () => {
  const { service, read } = await createThumbnail()
  const files = join(service.dataFolder, 'files')
  for (const run of (await readdir(files)).filter((name) => name.startsWith('run_')))
    await rm(join(files, run), { recursive: true })
  expect((await read()).status).toBe(410)
})

test('a picture that cannot be decoded is shown as it is, and is not decoded again for an hour', async () => {
  const { read } = await createThumbnail({ bytes: Buffer.from('<svg/>') })
  const { status, header } = await read()
  expect([status, header('location')]).toEqual([303, expect.stringMatching(/^\/outputs\//)])
  expect(header('cache-control')).toBe('private, max-age=3600')
})

test('a compromised decoder that leaves a link reveals no other file', async () => {
  const outside = temporaryFolder()
  writeFileSync(join(outside, 'secret'), 'secret')
  const { read } = await createThumbnail({}, async (job) => {
    symlinkSync(join(outside, 'secret'), join(job.folder, 'thumbnail.webp'))
    return [{ name: 'thumbnail.webp', contentType: 'image/webp' }]
  })
  expect((await read()).status).toBe(303)
  expect(readFileSync(join(outside, 'secret'), 'utf8')).toBe('secret')
})

test('a picture that takes longer than 30 s is given up', async () => {
  const { service, jobs, read } = await createThumbnail(
    {},
    ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  )
  const first = read()
  await expect.poll(() => jobs.length).toBe(1)
  await service.clock.advance(29_999)
  expect(jobs[0]?.signal.aborted).toBe(false)
  await service.clock.advance(1)
  expect((await first).status).toBe(303)
})
