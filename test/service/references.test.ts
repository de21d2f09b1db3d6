import { createHash, randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basename, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { untilAborted } from '../../src/host/abort.js'
import { HttpFailure } from '../../src/host/http.js'
import { StorageUnavailable } from '../../src/service/files/contract.js'
import { createLocalFiles } from '../../src/service/files/local-files.js'
import { createEndpoints } from '../../src/service/http/endpoints.js'
import { PREVIEW_MODELS } from '../../src/service/models/served-model.js'
import { createReferenceFetch } from '../../src/service/references/reference-fetch.js'
import { createReferenceLoader } from '../../src/service/references/reference-loader.js'
import { LOCAL_MODELS } from '../../src/service/rules/names.js'
import { createMemoryRateLimiter } from '../../src/service/rules/rate.js'
import { Refusal } from '../../src/service/rules/refusal.js'
import type { Store } from '../../src/service/store/index.js'
import { openSqliteStore } from '../../src/service/store/sqlite/index.js'
import {
  ask,
  createInstantEngine,
  createManualClock,
  createTestService,
  ended,
  filesBelow,
  ONE_PIXEL_PNG,
  type TestService,
  temporaryFolder,
  until,
} from '../support/index.js'

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

async function rendered(image_urls: readonly string[]) {
  const engine = createInstantEngine()
  const service = await createTestService({ engine })
  const created = await ask(service, 'POST', '/api/v1/runs', {
    model: LOCAL_MODELS.image,
    input: { prompt: 'a fox', image_urls },
  })
  expect(created.body).toMatchObject({ status: 'queued' })
  const run = await ended(service, created.body.id)
  const [job] = engine.jobs
  return { service, run, engine, job, images: job?.images }
}

test('embedded images reach the engine as files, and the run shows their description', async () => {
  const base64 = ONE_PIXEL_PNG.toString('base64')
  const { run, images, job, service } = await rendered([
    `data:image/png;base64,${base64}`,
    'data:image/svg+xml;charset=utf-8,%3Csvg%2f>é',
    `DATA:IMAGE/PNG;BASE64,${encodeURIComponent(base64)}`,
    'data:,',
  ])
  const png = { sha256: sha256(ONE_PIXEL_PNG), bytes: ONE_PIXEL_PNG.byteLength, content_type: 'image/png' }
  const svg = Buffer.from('<svg/>é')
  const nothing = Buffer.alloc(0)
  expect(run.input.image_urls).toEqual([
    png,
    { sha256: sha256(svg), bytes: svg.byteLength, content_type: 'image/svg+xml' },
    png,
    { sha256: sha256(nothing), bytes: 0, content_type: 'text/plain' },
  ])
  expect(images).toEqual([ONE_PIXEL_PNG, svg, ONE_PIXEL_PNG, nothing])
  expect(
    readdirSync(join(service.dataFolder, 'work')).flatMap((worker) =>
      readdirSync(join(service.dataFolder, 'work', worker)),
    ),
  ).toEqual([])
  expect(job?.input.image_urls).toEqual(
    [ONE_PIXEL_PNG, svg, ONE_PIXEL_PNG, nothing].map((bytes) => `sha256:${sha256(bytes)}`),
  )
  expect(
    inputsOf(service)
      .map((path) => basename(path))
      .sort(),
  ).toEqual([ONE_PIXEL_PNG, svg, nothing].map(sha256).sort())
})

/** The stored images of all runs. */
const inputsOf = ({ dataFolder }: TestService): readonly string[] =>
  filesBelow(join(dataFolder, 'files'))
    .filter((path) => path.includes('/inputs/'))
    .map((path) => join(dataFolder, 'files', path))

const PNG_URL = `data:image/png;base64,${ONE_PIXEL_PNG.toString('base64')}`
const ORDER = { model: LOCAL_MODELS.image, input: { prompt: 'a fox', image_urls: [PNG_URL] } }

test('an image that was damaged after its create is not passed to the engine', async () => {
  const engine = createInstantEngine()
  const service = await createTestService({ engine, rendering: false })
  const { body } = await ask(service, 'POST', '/api/v1/runs', ORDER)
  for (const path of inputsOf(service)) truncateSync(path, 7)
  service.service.startRendering()
  await ended(service, body.id)
  expect(engine.jobs.map(({ images }) => images)).toEqual([[undefined]])
})

/** The endpoints on a separate store, in which `onAdd` is called before each run is added. */
async function createWith(onAdd: (store: Store, attempt: number) => Promise<unknown>) {
  const clock = createManualClock()
  const folder = temporaryFolder()
  const opened = openSqliteStore(join(folder, 'service.db'))
  onTestFinished(() => opened.close())
  const accountId = await opened.ensureAccount({ name: 'default', credits: 10, nowMs: 0 })
  const userId = (await opened.addUser({ email: 'ann@example.com', accountId, nowMs: 0 })) ?? 0
  const from = { fromLink: false, address: undefined, userAgent: undefined }
  await opened.addSession({ hash: 's', userId, ...from, nowMs: 0, expiresAtMs: 1 })
  const store = opened
  mkdirSync(join(folder, 'files'))
  let attempts = 0
  const endpoints = createEndpoints({
    store: {
      ...store,
      async addRun(run) {
        if (run.onlyCheck !== true) await onAdd(opened, ++attempts)
        return await store.addRun(run)
      },
    },
    documents: PREVIEW_MODELS.map(({ document }) => document),
    clock,
    rateLimiter: createMemoryRateLimiter(clock),
    worker: { wake() {}, request() {}, stopCanceled() {} },
    findKey: async () => undefined,
    files: createLocalFiles(join(folder, 'files'), clock),
    onError() {},
  })
  const body = [Buffer.from(JSON.stringify(ORDER))]
  const balance = async () => (await opened.findAccount(accountId))?.balance
  return {
    create: () => endpoints.createWithoutKey(accountId, body, randomUUID(), { session: 's', nowMs: 0 }),
    balance,
    files: join(folder, 'files'),
    store: opened,
    clock,
  }
}

test('a create that is refused after its images were stored removes them', async () => {
  const { create, files } = await createWith(() => Promise.reject(new Refusal('insufficient_balance')))
  await expect(create()).rejects.toMatchObject({ status: 402 })
  expect(readdirSync(files)).toEqual([])
})

test('a create fails and is not charged while the folder for its image is unavailable', async () => {
  const { create, balance, files } = await createWith(async () => {})
  rmSync(files, { recursive: true })
  await expect(create()).rejects.toThrow(StorageUnavailable)
  expect([await balance(), existsSync(files)]).toEqual([10, false])
})

test('a prompt that looks like a data URL, or a text like JSON, stays text', async () => {
  const service = await createTestService()
  const input = { prompt: 'data:;base64,!!', style: 'data:,x', more: `"${'['.repeat(200)}\\` }
  const { body } = await ask(service, 'POST', '/api/v1/runs', { model: LOCAL_MODELS.image, input })
  expect((await ended(service, body.id)).input).toMatchObject(input)
})

test('an output URL of the service works as a reference, under any earlier address', async () => {
  const { service, run, engine } = await rendered([])
  const url = new URL(run.output.urls[0])
  url.host = 'an-earlier-address.test:1234'
  const { body } = await ask(service, 'POST', '/api/v1/runs', {
    model: LOCAL_MODELS.image,
    input: { prompt: 'again', image_urls: [url.href] },
  })
  await ended(service, body.id)
  expect(engine.jobs[1]?.images).toEqual([ONE_PIXEL_PNG])
})

async function serveImages() {
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(request.url ?? '')
    const [, kind = '', rest = ''] = (request.url ?? '').split('/')
    if (kind === 'hop')
      response.writeHead(302, { location: rest === '0' ? '/image' : `/hop/${Number(rest) - 1}` })
    if (kind === 'away') response.writeHead(302, { location: 'file:///etc/passwd' })
    if (kind === 'none') response.writeHead(404)
    response.end('image')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return { asked, base: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

function createFetch(privateAllowed: boolean) {
  const clock = createManualClock()
  const fetch = createReferenceFetch({ privateAllowed: () => privateAllowed, clock, env: {} })
  onTestFinished(() => fetch.close())
  const get = async (url: string) => {
    const chunks = await fetch.get(new URL(url), new AbortController().signal)
    return chunks && (await text(chunks))
  }
  return { get }
}

test.each([
  ['/image', 'image'],
  ['/hop/4', 'image'],
  ['/hop/5', undefined],
  ['/away', undefined],
  ['/none', undefined],
])('fetching %s gives %s', async (path, text) => {
  const { base } = await serveImages()
  expect(await createFetch(true).get(`${base}${path}`)).toBe(text)
})

/** Loads what hosts send: letters, each one chunk of a byte; `…` never ends, `!` breaks. */
function loadFrom(sources: readonly string[], { signal }: { signal: AbortSignal } = new AbortController()) {
  const clock = createManualClock()
  const folder = temporaryFolder()
  const fetching: string[] = []
  async function* send(letters: string, limited: AbortSignal) {
    for (const letter of letters) {
      if (letter === '!') throw new HttpFailure('the connection broke', { sent: true })
      if (letter === '…') {
        await untilAborted(limited)
        throw limited.reason
      }
      yield Buffer.from(letter)
    }
  }
  const loader = createReferenceLoader({
    files: { find: async () => undefined },
    fetch: {
      async get({ pathname }, limited) {
        fetching.push(pathname)
        return send(decodeURIComponent(pathname.slice(1)), limited)
      },
    },
    clock,
    maxBytes: { ofImage: 4, ofRun: 8 },
    findOutput: async () => undefined,
  })
  const image_urls = sources.map((letters) => `http://host.test/${letters}`)
  const loading = loader.load({ id: 'run_1', input: { image_urls } }, folder, signal)
  loading.catch(() => {})
  const loaded = async () => (await loading).map((path) => path && readFileSync(path, 'utf8'))
  return { clock, folder, fetching, loaded }
}

test.each<[what: string, sources: string[], expected: (string | undefined)[]]>([
  ['of the largest size', ['abcd', 'efgh'], ['abcd', 'efgh']],
  ['one byte larger', ['abcde', 'ab'], [undefined, 'ab']],
  ['broken off', ['ab!', 'abcd'], [undefined, 'abcd']],
])('references load up to the largest size: %s', async (_what, sources, expected) => {
  const { loaded, folder } = loadFrom(sources)
  expect(await loaded()).toEqual(expected)
  // Nothing is left of the others.
  expect(readdirSync(folder)).toHaveLength(expected.filter((text) => text !== undefined).length)
})

test('references beyond the total limit are left out', async () => {
  const { loaded, folder } = loadFrom(['abcd', 'abcd', 'abcd', 'abcd'])
  const kept = (await loaded()).filter((text) => text !== undefined)
  expect(kept.length).toBeLessThan(3)
  expect(kept.every((text) => text === 'abcd')).toBe(true)
  expect(readdirSync(folder)).toHaveLength(kept.length)
})

test('the fetches of one run have 30 s in total, and a stalled host does not block others', async () => {
  const slow = Array.from({ length: 13 }, () => '…')
  const { clock, fetching, loaded } = loadFrom([...slow, 'abcd'])
  await until('the fetches', () => fetching.length === 14)
  await clock.advance(29_999)
  expect(clock.alarms).toHaveLength(1)
  await clock.advance(1)
  expect(await loaded()).toEqual([...slow.map(() => undefined), 'abcd'])
})

test('loading stops at once when its run is aborted, and leaves no file', async () => {
  const stop = new AbortController()
  const { fetching, loaded, folder } = loadFrom(['a…'], stop)
  await until('the fetch', () => fetching.length === 1)
  stop.abort(new Error('closing'))
  await expect(loaded()).rejects.toThrow('closing')
  expect(readdirSync(folder)).toEqual([])
})

test('a public service fetches from no private address, under any name', async () => {
  const { base, asked } = await serveImages()
  const { get } = createFetch(false)
  const { port } = new URL(base)
  for (const host of ['127.0.0.1', 'localhost', '[::1]', '[::ffff:127.0.0.1]', '2130706433', '0x7f.1', '0'])
    expect(await get(`http://${host}:${port}/image`)).toBeUndefined()
  expect(asked).toEqual([])
})
