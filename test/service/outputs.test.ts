import {
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { fastify } from 'fastify'
import { beforeAll, expect, test } from 'vitest'
import { readText } from '../../src/host/response-body.js'
import type { FileStore } from '../../src/service/files/contract.js'
import { addOutputRoutes } from '../../src/service/http/api-routes.js'
import { LOCAL_MODELS } from '../../src/service/rules/names.js'
import {
  ask,
  created,
  createInstantEngine,
  createTestService,
  ended,
  FOX,
  finished,
  runOf,
  type TestService,
  until,
} from '../support/index.js'
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
  const run = await finished(service, { model: LOCAL_MODELS.video, input: { prompt: 'a boat' } })
  url = new URL(run.output.urls[0])
})

async function get(headers: Record<string, string> = {}) {
  const answer = await service.fetch({ method: 'GET', url, headers })
  return { status: answer.status, header: answer.header, text: await readText(answer, 1_000) }
}

test('an output is sent without a key, with the headers that a download needs', async () => {
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
})

// Every combination of headers: http/stored-file.test.ts.
test('a range, and a file that has not changed, are answered by the headers of the request', async () => {
  const etag = (await get()).header('etag') ?? ''
  const answerTo = async (headers: Record<string, string>) => {
    const { status, text, header } = await get(headers)
    return [status, status < 400 && text, header('etag'), header('content-range')]
  }
  const part = { range: 'bytes=4-', 'if-range': etag }
  expect(await answerTo(part)).toEqual([206, 'efghij', etag, 'bytes 4-9/10'])
  expect(await answerTo({ range: 'bytes=10-' })).toEqual([416, false, etag, 'bytes */10'])
  expect(await answerTo({ 'if-none-match': etag })).toEqual([304, '', etag, undefined])
})

test('a HEAD request gets the size of the file', async () => {
  const answer = await service.fetch({ method: 'HEAD' as 'GET', url, headers: {} })
  expect([answer.status, await readText(answer, 1_000)]).toEqual([200, ''])
  const names = ['content-length', 'content-range', 'accept-ranges', 'etag']
  expect(names.map((name) => answer.header(name))).toEqual([
    '10',
    undefined,
    'bytes',
    expect.stringMatching(ETAG),
  ])
})

/** Number of files that the routes below have read. */
let reads = 0

/** The routes alone, with any output. */
async function serveOutputs(signedUrl?: FileStore['signedUrl']) {
  const app = fastify()
  await app.register(addOutputRoutes, {
    files: {
      find: async () => ({
        bytes: 10,
        async read() {
          reads++
          return Readable.from(TEN)
        },
      }),
      signedUrl,
    },
    store: {
      findOutput: async (token, name) => ({
        token,
        name,
        contentType: 'video/mp4',
        bytes: 10,
        sha256: 'abc',
      }),
    },
  })
  return app
}

test('a request for an output in a store with signed URLs is redirected, without a cache', async () => {
  const app = await serveOutputs(
    async (key, contentType) => `https://bucket.example/${key}?type=${contentType}`,
  )
  const { statusCode, headers } = await app.inject('/outputs/token/clip.mp4')
  expect(statusCode).toBe(302)
  expect(headers).toMatchObject({
    location: 'https://bucket.example/token/clip.mp4?type=video/mp4',
    'cache-control': 'no-store',
  })
})

test.each([undefined, async () => 'https://bucket.example/'])(
  'a HEAD request reads no file',
  async (signedUrl) => {
    const app = await serveOutputs(signedUrl)
    const headers = { range: 'bytes=0-3' }
    const answer = await app.inject({ method: 'HEAD', url: '/outputs/token/clip.mp4', headers })
    expect([answer.statusCode, answer.headers['content-length']]).toEqual([200, '10'])
    expect(reads).toBe(0)
  },
)

test('an output is 503 while its folder is unavailable, and 410 only once it was removed', async () => {
  const own = await createTestService()
  const run = await finished(own)
  const output = new URL(run.output.urls[0])
  const folder = join(own.dataFolder, 'files')
  const statuses = async () => {
    await own.clock.advance(1_000)
    const { status, header } = await ask(own, 'GET', output.pathname)
    const { status: ready } = await ask(own, 'GET', '/readyz')
    return [status, header('retry-after'), ready]
  }
  expect(await statuses()).toEqual([200, undefined, 200])
  renameSync(folder, `${folder}.away`)
  expect(await statuses()).toEqual([503, '5', 503])
  // A run that has rendered waits for it.
  const id = await created(own)
  await own.clock.advance(60_000)
  expect((await runOf(own, id)).status).toBe('processing')
  renameSync(`${folder}.away`, folder)
  expect((await ended(own, id)).status).toBe('succeeded')
  expect(await statuses()).toEqual([200, undefined, 200])
  rmSync(join(folder, run.id), { recursive: true })
  expect(await statuses()).toEqual([410, undefined, 200])
})

test('a truncated output is an uncacheable 503 and an error in the log', async () => {
  const own = await createTestService()
  const run = await finished(own)
  const { pathname } = new URL(run.output.urls[0])
  const path = fileOf(own, pathname)
  const whole = readFileSync(path)
  truncateSync(path, 7)
  for (const headers of [{}, { range: 'bytes=0-3' }, { 'if-none-match': '*' }] as const) {
    const { status, header } = await ask(own, 'GET', pathname, undefined, { headers })
    expect([status, header('cache-control'), header('etag')]).toEqual([503, 'no-store', undefined])
  }
  const [, , token = '', name = ''] = pathname.split('/')
  expect(own.complaints[0]).toContain(`${name} has 7 of ${whole.length} bytes`)
  expect(own.complaints.join()).not.toContain(token)
  writeFileSync(path, whole)
  expect((await ask(own, 'GET', pathname)).status).toBe(200)
})

const fileOf = ({ dataFolder }: TestService, pathname: string): string =>
  join(dataFolder, 'files', pathname.replace(/^\/outputs\//, '').replace('.', '/'))

const DESCRIPTORS = '/proc/self/fd'

test.skipIf(!existsSync(DESCRIPTORS))(
  'the service closes the file of an output whose download is aborted',
  async () => {
    // More than the buffers between the file and the reader hold.
    const own = await createTestService({ engine: createInstantEngine({ bytes: Buffer.alloc(1_048_576) }) })
    const run = await finished(own)
    const controller = new AbortController()
    const output = new URL(run.output.urls[0])
    const response = await own.fetch({ method: 'GET', url: output, headers: {}, signal: controller.signal })
    const path = fileOf(own, output.pathname)
    expect(openFiles()).toContain(path)
    const read = async () => {
      for await (const _ of response.body) controller.abort(new Error('stop'))
    }
    await expect(read()).rejects.toThrow('stop')
    await until('the file is closed', () => !openFiles().includes(path))
  },
)

function openFiles(): readonly string[] {
  return readdirSync(DESCRIPTORS).flatMap((name) => {
    try {
      return readlinkSync(join(DESCRIPTORS, name))
    } catch {
      // The one that listed the folder.
      return []
    }
  })
}

test('requests for outputs do not count against a rate limit', async () => {
  for (let count = 0; count < 21; count++) expect((await get()).status).toBe(200)
})

test.each([
  '/outputs/%2e%2e/service.db',
  '/outputs/TOKEN/..%2f..%2fservice.db',
  '/outputs/TOKEN/%2e%2e%2fTOKEN%2fclip.mp4',
  '/outputs/TOKEN/clip.mp4%00',
  '/outputs/TOKEN/CLIP.mp4',
  '/outputs/TOKEN/',
  '/outputs/token/clip.mp4',
  '/outputs//etc/passwd',
  '/outputs/TOKEN/.hidden',
])('%s is 404', async (path) => {
  const [, , token = ''] = url.pathname.split('/')
  // Set past the URL parser, which would tidy the path before it is sent.
  const odd = { pathname: path.replaceAll('TOKEN', token), search: '', host: url.host } as URL
  const answer = await service.fetch({ method: 'GET', url: odd, headers: {} })
  expect(answer.status).toBe(404)
  expect(JSON.parse(await readText(answer, 1_000)).error.code).toBe('not_found')
})

test('no other user of the machine can read the data of the service', async () => {
  const modeOf = (name: string) => statSync(join(service.dataFolder, name)).mode & 0o777
  for (const folder of ['', 'files', 'work']) expect(modeOf(folder)).toBe(0o700)
  if (usesPostgres) return
  for (const file of ['service.db', 'service.db-wal']) expect(modeOf(file)).toBe(0o600)
})

test('output URLs begin with the public URL and its path', async () => {
  const prefixed = await createTestService({ publicUrl: 'https://media.example/rushes/' })
  const { body } = await ask(prefixed, 'POST', '/api/v1/runs', FOX)
  const { output } = await ended(prefixed, body.id)
  expect(output.urls[0]).toMatch(/^https:\/\/media\.example\/rushes\/outputs\//)
  expect((await ask(prefixed, 'GET', new URL(output.urls[0]).pathname.replace('/rushes', ''))).status).toBe(
    200,
  )
})
