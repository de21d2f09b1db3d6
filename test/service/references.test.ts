import { createHash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { LOCAL_MODELS } from '../../src/service/local-models.js'
import { isPublicAddress } from '../../src/service/references/public-address.js'
import { createReferenceFetch } from '../../src/service/references/reference-fetch.js'
import { createManualClock } from '../support/clock.js'
import { createInstantEngine, ONE_PIXEL_PNG } from '../support/engines.js'
import { ask, createTestService, ended } from '../support/service.js'
import { until } from '../support/until.js'

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
  return { service, run, engine, job, references: job?.references.map((each) => each && Buffer.from(each)) }
}

test('images inside the request reach the engine as bytes, and the run as their description', async () => {
  const base64 = ONE_PIXEL_PNG.toString('base64')
  const { run, references, job, service } = await rendered([
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
  expect(references).toEqual([ONE_PIXEL_PNG, svg, ONE_PIXEL_PNG, nothing])
  expect(job?.input.image_urls).toEqual(
    [ONE_PIXEL_PNG, svg, ONE_PIXEL_PNG, nothing].map((bytes) => `sha256:${sha256(bytes)}`),
  )
  expect(readdirSync(join(service.dataFolder, 'inputs')).sort()).toEqual(
    [ONE_PIXEL_PNG, svg, nothing].map(sha256).sort(),
  )
})

test('a prompt stays text, whatever it looks like', async () => {
  const service = await createTestService()
  const input = { prompt: 'data:;base64,!!', style: 'data:,x' }
  const { body } = await ask(service, 'POST', '/api/v1/runs', { model: LOCAL_MODELS.image, input })
  expect((await ended(service, body.id)).input).toEqual(input)
})

test('an image that cannot be fetched is left out, and the run succeeds', async () => {
  const { run, references } = await rendered(['not a URL', 'ftp://example.org/a.png', 'file:///etc/passwd'])
  expect(run.status).toBe('succeeded')
  expect(run.input.image_urls).toEqual(['not a URL', 'ftp://example.org/a.png', 'file:///etc/passwd'])
  expect(references).toEqual([undefined, undefined, undefined])
})

test('an output of the service is a reference too, at whatever address it was given out', async () => {
  const { service, run, engine } = await rendered([])
  const url = new URL(run.output.urls[0])
  url.host = 'an-earlier-address.test:1234'
  const { body } = await ask(service, 'POST', '/api/v1/runs', {
    model: LOCAL_MODELS.image,
    input: { prompt: 'again', image_urls: [url.href] },
  })
  await ended(service, body.id)
  expect(engine.jobs[1]?.references.map((bytes) => bytes && Buffer.from(bytes))).toEqual([ONE_PIXEL_PNG])
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
    if (kind === 'late') return void response.writeHead(200).write('begins')
    response.end(kind === 'large' ? Buffer.alloc(2_000) : 'image')
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
    const bytes = await fetch.get(new URL(url), 1_000, new AbortController().signal)
    return bytes && Buffer.from(bytes).toString()
  }
  return { clock, fetch, get }
}

test.each([
  ['/image', 'image'],
  ['/hop/4', 'image'],
  ['/hop/5', undefined],
  ['/away', undefined],
  ['/none', undefined],
  ['/large', undefined],
])('fetching %s gives %s', async (path, text) => {
  const { base } = await serveImages()
  expect(await createFetch(true).get(`${base}${path}`)).toBe(text)
})

test('one that does not end is given up after 30 s', async () => {
  const { base, asked } = await serveImages()
  const { clock, get } = createFetch(true)
  const got = get(`${base}/late`)
  await until('the request', () => asked.length > 0)
  await clock.advance(30_000)
  expect(await got).toBeUndefined()
})

test('a service that others can reach fetches from no private address, by whatever name', async () => {
  const { base, asked } = await serveImages()
  const { get } = createFetch(false)
  const { port } = new URL(base)
  for (const host of ['127.0.0.1', 'localhost', '[::1]', '[::ffff:127.0.0.1]', '2130706433', '0x7f.1', '0'])
    expect(await get(`http://${host}:${port}/image`)).toBeUndefined()
  expect(asked).toEqual([])
})

test.each<[what: string, isPublic: boolean, addresses: readonly string[]]>([
  [
    'the first and last of public networks',
    true,
    [
      ...['8.8.8.8', '172.15.255.255', '172.32.0.1', '100.63.255.255', '100.128.0.0', '198.17.255.255'],
      ...['198.20.0.0', '223.255.255.255', '2606:4700::1111', '[2606:4700::1111]', '2001:200::1'],
      ...['::ffff:8.8.8.8', '::ffff:808:808'],
    ],
  ],
  ['this network', false, ['0.0.0.0', '0.255.255.255', '::']],
  [
    'private',
    false,
    ['10.1.2.3', '172.16.0.0', '172.31.0.1', '192.168.1.1', 'fec0::1', 'fc00::1', 'fd00::1'],
  ],
  ['shared by carriers', false, ['100.64.0.1', '100.127.255.255']],
  ['loopback', false, ['127.9.9.9', '::1']],
  ['link-local', false, ['169.254.169.254', 'fe80::1', 'fe80::1%eth0']],
  ['protocol assignments and relays', false, ['192.0.0.1', '192.88.99.1']],
  ['documentation', false, ['192.0.2.1', '198.51.100.1', '203.0.113.1', '2001:db8::1', '3fff::1']],
  ['benchmarks', false, ['198.18.0.1', '198.19.255.255', '2001:2::1']],
  ['multicast, reserved and broadcast', false, ['224.0.0.1', '240.0.0.1', '255.255.255.255', 'ff02::1']],
  ['IPv4 that is mapped', false, ['::ffff:10.0.0.1', '::ffff:7f00:1', '[::ffff:127.0.0.1]']],
  ['IPv4 that is compatible or translated', false, ['::7f00:1', '::127.0.0.1', '::ffff:0:7f00:1']],
  [
    'IPv4 in NAT64, 6to4 and Teredo',
    false,
    ['64:ff9b::a00:1', '64:ff9b:1::a00:1', '2002:7f00:1::', '2001::1'],
  ],
  ['discard, ORCHID, segment routing', false, ['100::1', '2001:10::1', '2001:20::1', '5f00::1']],
  ['what has not been given to anybody', false, ['4000::1', '1fff::1']],
  ['not an address', false, ['nonsense', '127.1', '']],
])('%s: public %s', (_what, isPublic, addresses) => {
  expect(addresses.filter((address) => isPublicAddress(address) !== isPublic)).toEqual([])
})
