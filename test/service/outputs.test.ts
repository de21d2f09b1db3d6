import { statSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { fastify } from 'fastify'
import { beforeAll, expect, test } from 'vitest'
import { readText } from '../../src/host/http.js'
import { addOutputRoutes } from '../../src/service/http/output-routes.js'
import { LOCAL_MODELS } from '../../src/service/local-models.js'
import { createInstantEngine } from '../support/engines.js'
import { ask, createTestService, ended, type TestService } from '../support/service.js'
import { usesPostgres } from '../support/test-database.js'

const TEN = 'abcdefghij'
const ETAG = /^"[0-9a-f]{64}"$/

let service: TestService
/** Of a clip that the service has made. */
let url: URL
beforeAll(async () => {
  const engine = createInstantEngine({
    bytes: Buffer.from(TEN),
    files: ['clip.mp4'],
    contentType: 'video/mp4',
  })
  service = await createTestService({ engine })
  const { body } = await ask(service, 'POST', '/api/v1/runs', {
    model: LOCAL_MODELS.video,
    input: { prompt: 'a boat' },
  })
  const run = await ended(service, body.id)
  url = new URL(run.output.urls[0])
})

async function get(headers: Record<string, string> = {}) {
  const answer = await service.fetch({ method: 'GET', url, headers })
  return { status: answer.status, header: answer.header, text: await readText(answer, 1_000) }
}

test('an output comes whole, without a key, with all that a download goes by', async () => {
  const answer = await get()
  expect([answer.status, answer.text]).toEqual([200, TEN])
  const headers = [
    'content-type',
    'content-length',
    'accept-ranges',
    'cache-control',
    'x-content-type-options',
    'content-security-policy',
  ]
  expect(headers.map((name) => answer.header(name))).toEqual([
    'video/mp4',
    '10',
    'bytes',
    'private, max-age=31536000, immutable',
    'nosniff',
    expect.stringMatching(/^default-src 'none'; .* sandbox$/),
  ])
  expect(answer.header('etag')).toMatch(ETAG)
  expect(Date.parse(answer.header('last-modified') ?? '')).not.toBeNaN()
})

// All of them: http/conditional-request.test.ts.
test.each<[name: string, headers: Record<string, string>, status: number, text: string, range?: string]>([
  ['a part', { range: 'bytes=2-3' }, 206, 'cd', 'bytes 2-3/10'],
  ['after the end', { range: 'bytes=10-' }, 416, '', 'bytes */10'],
  ['if it is still the same', { range: 'bytes=4-', 'if-range': 'ETAG' }, 206, 'efghij', 'bytes 4-9/10'],
  ['if it is as old', { range: 'bytes=4-', 'if-range': 'DATE' }, 206, 'efghij', 'bytes 4-9/10'],
  ['unless it is the same', { 'if-none-match': 'ETAG' }, 304, ''],
  ['unless it is as old', { 'if-modified-since': 'DATE' }, 304, ''],
  ['only if it is another', { 'if-match': '"other"' }, 412, ''],
])('%s', async (_name, headers, status, text, range) => {
  const whole = await get()
  const fill = (value: string) =>
    value.replace('ETAG', whole.header('etag') ?? '').replace('DATE', whole.header('last-modified') ?? '')
  const answer = await get(
    Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, fill(value)])),
  )
  expect(answer.status).toBe(status)
  if (status < 400) expect(answer.text).toBe(text)
  expect(answer.header('content-range')).toBe(range)
  if (status < 400) expect(answer.header('etag')).toBe(whole.header('etag'))
})

test('outputs in a store with URLs of its own are redirected to, without a cache', async () => {
  const app = fastify()
  await app.register(addOutputRoutes, {
    files: {
      find: async () => ({ bytes: 10, modifiedAtMs: 0, read: async () => Readable.from('x') }),
      signedUrl: async (key, { method, contentType }) =>
        `https://bucket.example/${key}?${method}&type=${contentType}`,
    },
    findOutput: async (token, name) => ({ token, name, contentType: 'video/mp4', bytes: 10, sha256: 'abc' }),
  })
  const { statusCode, headers } = await app.inject('/outputs/token/clip.mp4')
  expect(statusCode).toBe(302)
  expect(headers).toMatchObject({
    location: 'https://bucket.example/token/clip.mp4?GET&type=video/mp4',
    'cache-control': 'no-store',
  })
})

test('outputs count against no limit', async () => {
  for (let count = 0; count < 40; count++) expect((await get()).status).toBe(200)
})

test.each([
  '/outputs/../service.db',
  '/outputs/%2e%2e/service.db',
  '/outputs/TOKEN/..%2f..%2fservice.db',
  '/outputs/TOKEN/..%5c..%5cservice.db',
  '/outputs/TOKEN/%2e%2e%2fTOKEN%2fclip.mp4',
  '/outputs/TOKEN/clip.mp4%00',
  '/outputs/TOKEN/clip.mp4%00.png',
  '/outputs/TOKEN/CLIP.mp4',
  '/outputs/TOKEN/.',
  '/outputs/TOKEN/',
  '/outputs/TOKEN',
  '/outputs/',
  '/outputs',
  '/outputs/token/clip.mp4',
  '/outputs/TOKEN/clip.mp4/',
  '/outputs//etc/passwd',
  '/outputs/TOKEN/.hidden',
])('%s is not there', async (path) => {
  const [, , token = ''] = url.pathname.split('/')
  // Set past the URL parser, which would tidy the path before it is sent.
  const odd = { pathname: path.replaceAll('TOKEN', token), search: '', host: url.host } as URL
  const answer = await service.fetch({ method: 'GET', url: odd, headers: {} })
  expect(answer.status).toBe(404)
  expect(JSON.parse(await readText(answer, 1_000)).error.code).toBe('not_found')
})

test('what the service keeps, nobody else on the machine can read', async () => {
  const modeOf = (name: string) => statSync(join(service.dataFolder, name)).mode & 0o777
  for (const folder of ['', 'inputs', 'outputs', 'work']) expect(modeOf(folder)).toBe(0o700)
  if (usesPostgres) return
  for (const file of ['service.db', 'service.db-wal']) expect(modeOf(file)).toBe(0o600)
})

test('output URLs begin with the public URL, and with its path', async () => {
  const prefixed = await createTestService({ publicUrl: 'https://media.example/rushes/' })
  const { body } = await ask(prefixed, 'POST', '/rushes/api/v1/runs', {
    model: LOCAL_MODELS.image,
    input: { prompt: 'a fox' },
  })
  const { output } = await ended(prefixed, body.id)
  expect(output.urls[0]).toMatch(/^https:\/\/media\.example\/rushes\/outputs\//)
  expect((await ask(prefixed, 'GET', output.urls[0])).status).toBe(200)
})
