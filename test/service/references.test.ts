import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, truncateSync } from 'node:fs'
import { basename, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { untilAborted } from '../../src/host/abort.js'
import { HttpFailure } from '../../src/host/http.js'
import { createReferenceFetch } from '../../src/service/references/reference-fetch.js'
import { createReferenceLoader } from '../../src/service/references/reference-loader.js'
import {
  administer,
  ask,
  created,
  createInstantEngine,
  createManualClock,
  createModelServer,
  createTestService,
  ended,
  FOX,
  filesBelow,
  finished,
  ONE_PIXEL_PNG,
  type TestService,
  temporaryFolder,
  until,
} from '../support/index.js'

const RUNS = '/api/v1/runs'
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

async function rendered(image_urls: readonly string[]) {
  const engine = createInstantEngine()
  const service = await createTestService({ engine })
  const run = await finished(service, { ...FOX, input: { prompt: 'a fox', image_urls } })
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
const ORDER = { ...FOX, input: { ...FOX.input, image_urls: [PNG_URL] } }

test('an image that was damaged after its create is not passed to the engine', async () => {
  const engine = createInstantEngine()
  const service = await createTestService({ engine, rendering: false })
  const id = await created(service, ORDER)
  for (const path of inputsOf(service)) truncateSync(path, 7)
  service.service.startRendering()
  await ended(service, id)
  expect(engine.jobs.map(({ images }) => images)).toEqual([[undefined]])
})

test('a create that exceeds the balance, also beside another one, or that repeats one stores no image', async () => {
  const service = await createTestService({ rendering: false })
  const admin = await administer(service)
  await admin.addCredits('default', -9_999)
  const create = (image: string, key: string) => {
    const body = { ...FOX, input: { ...FOX.input, image_urls: [`data:image/png,${image}`] } }
    return ask(service, 'POST', RUNS, body, { headers: { 'idempotency-key': key } })
  }
  const answers = await Promise.all(['one', 'two'].map((key) => create('paid', key)))
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 402])
  const accepted = answers[0]?.status === 201 ? 'one' : 'two'
  const later = [create('unpaid', 'three'), create('other', accepted), create('paid', accepted)]
  const [unpaid, other, again] = await Promise.all(later)
  expect([unpaid?.status, other?.status, again?.status]).toEqual([402, 400, 201])
  expect(inputsOf(service)).toEqual([expect.stringContaining(again?.body.id)])
  await admin.addCredits('default', 1)
  await Promise.all([create('paid', 'four'), create('paid', 'four')])
  expect(inputsOf(service)).toHaveLength(2)
})

test('a create fails and is not charged while the folder for its image is unavailable', async () => {
  const service = await createTestService({ rendering: false })
  rmSync(join(service.dataFolder, 'files'), { recursive: true })
  expect((await ask(service, 'POST', RUNS, ORDER)).status).toBe(503)
  expect(existsSync(join(service.dataFolder, 'files'))).toBe(false)
  expect(await (await administer(service)).accounts()).toMatchObject([{ balance: 10_000, runs: 0 }])
})

test('a prompt that looks like a data URL, or a text like JSON, stays text', async () => {
  const service = await createTestService()
  const input = { prompt: 'data:;base64,!!', style: 'data:,x', more: `"${'['.repeat(200)}\\` }
  expect((await finished(service, { ...FOX, input })).input).toMatchObject(input)
})

test('an output URL of the service works as a reference, under any earlier address', async () => {
  const { service, run, engine } = await rendered([])
  const url = new URL(run.output.urls[0])
  url.host = 'an-earlier-address.test:1234'
  await finished(service, { ...FOX, input: { prompt: 'again', image_urls: [url.href] } })
  expect(engine.jobs[1]?.images).toEqual([ONE_PIXEL_PNG])
})

/** A host of images, and of redirects to them. */
const serveImages = async () =>
  await createModelServer(({ path }) => {
    const [, kind = '', rest = ''] = path.split('/')
    if (kind === 'hop')
      return { status: 302, headers: { location: rest === '0' ? '/image' : `/hop/${Number(rest) - 1}` } }
    if (kind === 'away') return { status: 302, headers: { location: 'file:///etc/passwd' } }
    return kind === 'none' ? { status: 404 } : { body: 'image' }
  })

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
  const { url } = await serveImages()
  expect(await createFetch(true).get(`${url}${path}`)).toBe(text)
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

test.each([
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
  const { url, requests } = await serveImages()
  const { get } = createFetch(false)
  const { port } = new URL(url)
  for (const host of ['127.0.0.1', 'localhost', '[::1]', '[::ffff:127.0.0.1]', '2130706433', '0x7f.1', '0'])
    expect(await get(`http://${host}:${port}/image`)).toBeUndefined()
  expect(requests).toEqual([])
})
