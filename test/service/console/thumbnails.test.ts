/** The thumbnails of the console's list: who gets them, what is refused, and how many are made at once. */
import { existsSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { get } from 'node:http'
import { join, relative } from 'node:path'
import sharp from 'sharp'
import { expect, onTestFinished, test } from 'vitest'
import { createThumbnailEngine } from '../../../src/preview/thumbnail.js'
import { CONSOLE_PATHS } from '../../../src/protocol/console.js'
import {
  type Engine,
  RendererClosed,
  RendererCrashed,
  type RenderJob,
} from '../../../src/service/engines/engine.js'
import { createMetrics } from '../../../src/service/metrics.js'
import { createManualClock } from '../../support/clock.js'
import {
  type Browser,
  createConsoleService,
  createInConsole,
  load,
  pathOf,
  signInByLink,
} from '../../support/console.js'
import {
  createInstantEngine,
  type InstantEngineOptions,
  type RecordingEngine,
} from '../../support/engines.js'
import { sumOf } from '../../support/metrics.js'
import { ended, type TestService, type TestServiceOptions, temporaryFolder } from '../../support/service.js'

const PICTURE = await sharp({ create: { width: 640, height: 320, channels: 3, background: 'teal' } })
  .png()
  .toBuffer()

/** Counts what it is asked for. */
function createCountedEngine(engine: Engine = createThumbnailEngine()): RecordingEngine {
  const jobs: RenderJob[] = []
  return {
    jobs,
    render(job) {
      jobs.push(job)
      return engine.render(job)
    },
  }
}

async function createService(
  output: InstantEngineOptions = {},
  { thumbnailEngine = createThumbnailEngine(), ...options }: TestServiceOptions = {},
) {
  const service = await createConsoleService({
    rendering: true,
    engine: createInstantEngine({ bytes: PICTURE, ...output }),
    thumbnailEngine,
    ...options,
  })
  return { service, browser: await signInByLink(service) }
}

async function createRun(service: TestService, browser: Browser) {
  const { id } = await createInConsole(browser)
  await ended(service, id)
  return (await browser.get(pathOf(CONSOLE_PATHS.run, id))).body
}

/** A service with a run that has ended. */
async function createThumbnail(...parameters: Parameters<typeof createService>) {
  const { service, browser } = await createService(...parameters)
  const run = await createRun(service, browser)
  return { service, browser, run, thumbnail: run.thumbnail as string }
}

/** With its bytes. */
const read = (service: TestService, { cookie }: Browser, path: string, headers = {}) =>
  load(service, `/${path}`, { cookie: `rushes_session=${cookie}`, ...headers })

const thumbnailOf = (id: string) => pathOf(CONSOLE_PATHS.thumbnail, id).slice(1)
const NONE = [404, 'not_found', 'no-store']

const refused = async (browser: Browser, path: string) => {
  const { status, body, header } = await browser.get(`/${path}`)
  return [status, body.error?.code, header('cache-control')]
}

test('a thumbnail is a small WebP that the browser caches, with an ETag', async () => {
  const { service, browser, run } = await createThumbnail()
  expect(run.thumbnail).toBe(`api/console/runs/${run.id}/thumbnail`)
  expect((await browser.get(CONSOLE_PATHS.runs)).body.runs[0].thumbnail).toBe(run.thumbnail)

  const { status, header, bytes } = await read(service, browser, run.thumbnail)
  const etag = header('etag') ?? ''
  expect([status, header('content-type'), header('cache-control'), header('x-content-type-options')]).toEqual(
    [200, 'image/webp', 'private, max-age=31536000, immutable', 'nosniff'],
  )
  expect(etag).toMatch(/^"[\w-]+"$/)
  expect(await sharp(bytes).metadata()).toMatchObject({ format: 'webp', width: 384, height: 192 })
  expect(bytes.length).toBeLessThan(2_000)

  const known = await read(service, browser, run.thumbnail, { 'if-none-match': `W/${etag}` })
  expect([known.status, known.bytes.length, known.header('etag')]).toEqual([304, 0, etag])
  const head = await browser.ask('HEAD', `/${run.thumbnail}`)
  expect([head.status, head.header('content-length')]).toEqual([200, String(bytes.length)])
  expect(service.complaints).toEqual([])
})

test.each([
  ['an SVG', { files: ['a.svg'], contentType: 'image/svg+xml' }],
  ['a video', { files: ['a.mp4'], contentType: 'video/mp4' }],
])('%s has no thumbnail', async (_, output) => {
  const { browser, run } = await createThumbnail(output)
  expect([run.outputs.length, run.thumbnail]).toEqual([1, null])
  expect(await refused(browser, thumbnailOf(run.id))).toEqual(NONE)
})

test('a queued run has no thumbnail, nor has any run without a thumbnail engine', async () => {
  const { service, browser } = await createService({}, { rendering: false })
  const { id, thumbnail } = await createInConsole(browser)
  expect(thumbnail).toBe(null)
  expect(await refused(browser, thumbnailOf(id))).toEqual(NONE)
  const other = await createConsoleService({ rendering: true, engine: createInstantEngine() })
  const run = await createRun(other, await signInByLink(other))
  expect([service.complaints, run.outputs.length, run.thumbnail]).toEqual([[], 1, null])
})

test('the thumbnail of a removed file is 410, also with a matching ETag', async () => {
  const { service, browser, thumbnail } = await createThumbnail()
  const etag = (await read(service, browser, thumbnail)).header('etag') ?? ''
  const files = join(service.dataFolder, 'files')
  for (const name of await readdir(files))
    if (name.startsWith('run_')) await rm(join(files, name), { recursive: true })
  expect(await refused(browser, thumbnail)).toEqual([410, 'gone', 'no-store'])
  expect((await read(service, browser, thumbnail, { 'if-none-match': etag })).status).toBe(410)
})

test('a picture that cannot be decoded is refused, and not tried again', async () => {
  const thumbnailEngine = createCountedEngine()
  const bytes = Buffer.from('<svg/>')
  const { service, browser, thumbnail } = await createThumbnail({ bytes }, { thumbnailEngine })
  for (let time = 0; time < 3; time++) expect(await refused(browser, thumbnail)).toEqual(NONE)
  expect(thumbnailEngine.jobs.length).toBe(1)
  expect(service.complaints).toEqual([])
})

test.each<[string, (folder: string, outside: string) => string]>([
  ['names a file elsewhere', (folder, outside) => join(relative(folder, outside), 'secret')],
  [
    'leaves a link',
    (folder, outside) => {
      symlinkSync(join(outside, 'secret'), join(folder, 'thumbnail.webp'))
      return 'thumbnail.webp'
    },
  ],
  [
    'replaces its folder',
    (folder, outside) => {
      rmSync(folder, { recursive: true })
      symlinkSync(outside, folder)
      return 'secret'
    },
  ],
])('a compromised decoder that %s reveals no other file', async (_, deed) => {
  const outside = temporaryFolder()
  writeFileSync(join(outside, 'secret'), 'secret')
  let folder = ''
  const thumbnailEngine: Engine = {
    async render(job) {
      folder = job.folder
      onTestFinished(() => rmSync(job.folder, { recursive: true, force: true }))
      return [{ name: deed(job.folder, outside), contentType: 'image/webp' }]
    },
  }
  const { browser, thumbnail } = await createThumbnail({}, { thumbnailEngine })
  expect((await refused(browser, thumbnail))[0]).toBe(404)
  expect(readFileSync(join(outside, 'secret'), 'utf8')).toBe('secret')
  if (existsSync(folder)) expect(readlinkSync(folder)).toBe(outside)
})

/** Begins, and never ends by itself. */
const endless: Engine = {
  render: ({ signal }) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
}

test.each([
  ['a full disk', () => new Error('ENOSPC: no space left on device, write'), [503, 503, 503], 3],
  ['a crash', () => new RendererCrashed('killed'), [404, 404, 404], 1],
  ['the stop of the service', () => new RendererClosed(), [503, 503, 503], 3],
])(
  'after %s, a thumbnail is tried again only if the picture is not the cause',
  async (_, error, statuses, jobs) => {
    const thumbnailEngine = createCountedEngine({ render: () => Promise.reject(error()) })
    const { browser, thumbnail } = await createThumbnail({}, { thumbnailEngine })
    const answers = []
    for (const _each of statuses) answers.push((await refused(browser, thumbnail))[0])
    expect([answers, thumbnailEngine.jobs.length]).toEqual([statuses, jobs])
  },
)

test('a thumbnail is created once the disk has space again', async () => {
  const error = Object.assign(new Error('no space left'), { code: 'ENOSPC' })
  const engine = createThumbnailEngine()
  const thumbnailEngine = createCountedEngine({
    render: (job) => (thumbnailEngine.jobs.length % 2 === 1 ? Promise.reject(error) : engine.render(job)),
  })
  const { service, browser, thumbnail } = await createThumbnail({}, { thumbnailEngine })
  const statuses = []
  for (let time = 0; time < 4; time++) statuses.push((await read(service, browser, thumbnail)).status)
  expect(statuses).toEqual([503, 200, 503, 200])
})

test('a picture that takes too long is refused for ten minutes', async () => {
  const thumbnailEngine = createCountedEngine(endless)
  const { service, browser, thumbnail } = await createThumbnail({}, { thumbnailEngine })
  const begun = (jobs: number) => expect.poll(() => thumbnailEngine.jobs.length).toBe(jobs)
  const first = refused(browser, thumbnail)
  await begun(1)
  await service.clock.advance(29_999)
  expect(thumbnailEngine.jobs[0]?.signal.aborted).toBe(false)
  await service.clock.advance(1)
  expect(await first).toEqual(NONE)
  await service.clock.advance(599_999)
  expect(await refused(browser, thumbnail)).toEqual(NONE)
  expect(thumbnailEngine.jobs).toHaveLength(1)
  await service.clock.advance(1)
  const again = refused(browser, thumbnail)
  await begun(2)
  await service.clock.advance(30_000)
  expect(await again).toEqual(NONE)
})

test('a request whose connection closes while it waits renders nothing', async () => {
  const opened: (() => void)[] = []
  const thumbnailEngine = createCountedEngine({
    async render(job) {
      await new Promise<void>((resolve) => opened.push(resolve))
      return await createThumbnailEngine().render(job)
    },
  })
  const { service, browser } = await createService({}, { thumbnailEngine })
  const paths = []
  for (let at = 0; at < 4; at++) paths.push((await createRun(service, browser)).thumbnail)
  const { url } = await service.service.listen({ host: '127.0.0.1', port: 0 })
  const headers = { cookie: `rushes_session=${browser.cookie}` }
  const statuses: number[] = []
  const ask = async (path: string) => {
    const request = get(`${url}/${path}`, { headers, agent: false }, (response) => {
      statuses.push(response.statusCode ?? 0)
      response.resume()
    }).on('error', () => statuses.push(0))
    await new Promise((resolve) => request.once('finish', resolve))
    return request
  }
  await ask(paths[0])
  await ask(paths[1])
  await expect.poll(() => opened.length).toBe(2)
  const leaving = await ask(paths[2])
  // Its place in the queue is certain once a later request has been answered.
  expect((await fetch(`${url}/api/console/runs`, { headers })).status).toBe(200)
  leaving.destroy()
  await expect.poll(() => statuses).toEqual([0])
  expect((await fetch(`${url}/api/console/runs`, { headers })).status).toBe(200)
  await ask(paths[3])
  for (const open of opened.splice(0)) open()
  await expect.poll(() => opened.length).toBe(1)
  for (const open of opened.splice(0)) open()
  await expect.poll(() => statuses).toEqual([0, 200, 200, 200])
  const made = thumbnailEngine.jobs.length
  expect([made, service.complaints]).toEqual([3, []])
})

test('a user gets 600 thumbnails in 10 s, counted apart from other requests', async () => {
  const { service, browser, thumbnail } = await createThumbnail()
  await service.clock.advance(10_000)
  const etag = (await read(service, browser, thumbnail)).header('etag') ?? ''
  const statuses = new Set<number>()
  for (let at = 1; at < 600; at++)
    statuses.add((await read(service, browser, thumbnail, { 'if-none-match': etag })).status)
  expect([...statuses]).toEqual([304])
  expect(await refused(browser, thumbnail)).toEqual([429, 'RATE_LIMITED', 'no-store'])
  expect((await browser.get(CONSOLE_PATHS.runs)).status).toBe(200)
  await service.clock.advance(10_000)
  for (let at = 0; at < 200; at++) await browser.get(CONSOLE_PATHS.sessions)
  expect((await browser.get(CONSOLE_PATHS.runs)).status).toBe(429)
  expect((await read(service, browser, thumbnail)).status).toBe(200)
})

test('an API node creates thumbnails of outputs that another node rendered', async () => {
  const { service, thumbnail } = await createThumbnail()
  const { dataFolder, databaseUrl } = service
  const node = await createConsoleService({
    role: 'api',
    thumbnailEngine: createThumbnailEngine(),
    ...{ dataFolder, databaseUrl, clock: service.clock },
  })
  const there = await signInByLink(node)
  expect((await read(node, there, thumbnail)).status).toBe(200)
})

test('metrics know the route', async () => {
  const clock = createManualClock()
  const metrics = createMetrics(clock)
  const { service, browser, thumbnail } = await createThumbnail({}, { metrics, clock })
  expect((await read(service, browser, thumbnail)).status).toBe(200)
  const labels = { method: 'GET', route: CONSOLE_PATHS.thumbnail, status: '200' }
  expect(sumOf(await metrics.text(), 'rushes_http_requests_total', labels)).toBe(1)
})
