import { beforeEach, describe, expect, test } from 'vitest'
import { RushesError } from '../../src/errors.js'
import { readText } from '../../src/host/response-body.js'
import { openS3Storage, parseStorageUrl } from '../../src/service/files/s3-storage.js'
import {
  ask,
  created,
  createInstantEngine,
  createTestService,
  ended,
  FOX,
  finished,
  ONE_PIXEL_PNG,
  ONE_PIXEL_URL,
  runOf,
  type TestService,
  type TestServiceOptions,
  until,
} from '../support/index.js'
import { hasS3rver, inEnvironment, type S3Store, startS3Store } from '../support/s3-store.js'

const WITH_IMAGE = { ...FOX, input: { ...FOX.input, image_urls: [ONE_PIXEL_URL] } }

const openStorage = (url: string, { warn = (_: string) => {}, env = process.env } = {}) =>
  openS3Storage({ url, env, warn })

describe.skipIf(!hasS3rver)('a service with a bucket', () => {
  let store: S3Store
  beforeEach(async () => {
    store = await startS3Store()
    inEnvironment(store.env)
  })

  async function createStoredService(options: TestServiceOptions = {}) {
    const storage = await openStorage(`s3://${store.bucket}/team`)
    return await createTestService({ ...options, storage })
  }
  async function createOutput(options: TestServiceOptions = {}) {
    const bytes = Buffer.from('abcdefghij')
    const engine = createInstantEngine({ bytes, files: ['clip.mp4'], contentType: 'video/mp4' })
    const service = await createStoredService({ engine, ...options })
    const run = await finished(service)
    return { service, url: new URL(run.output.urls[0]) }
  }
  async function get(
    { service, url }: { service: TestService; url: URL },
    headers: Record<string, string> = {},
    method = 'GET',
  ) {
    const answer = await service.fetch({ method: method as 'GET', url, headers })
    return { status: answer.status, header: answer.header, text: await readText(answer, 1_000) }
  }

  test('stores outputs below the prefix, and redirects their URLs to signed ones', async () => {
    const output = await createOutput()
    expect(store.keys()).toEqual([
      'team/database-id',
      `team${output.url.pathname.replace('/outputs/', '/').replace('.', '/')}`,
    ])
    const { status, header } = await get(output)
    expect([status, header('cache-control')]).toEqual([302, 'no-store'])
    const signed = await fetch(header('location') ?? '')
    expect([signed.status, await signed.text()]).toEqual([200, 'abcdefghij'])
    expect(signed.headers.get('content-type')).toBe('video/mp4')
    expect(signed.headers.get('etag')).toMatch(/^"[^"]+"$/)
  })

  test('stores embedded images with their type, and passes them and earlier outputs to the engine', async () => {
    const engine = createInstantEngine()
    const service = await createStoredService({ engine })
    const first = await finished(service, WITH_IMAGE)
    const [input = ''] = store.keys().filter((key) => key.includes('/inputs/'))
    expect(store.contentType(input)).toBe('image/png')
    const next = { ...FOX, input: { prompt: 'a fox', image_urls: first.output.urls } }
    await finished(service, next)
    for (const { images } of engine.jobs) expect(images).toEqual([ONE_PIXEL_PNG])
  })

  describe('whose bucket does not answer', () => {
    const readiness = (service: TestService) => ask(service, 'GET', '/readyz')

    test('reports not ready, and becomes ready again automatically', async () => {
      const service = await createStoredService()
      // It looks once a second, and a look may come too late on a busy machine.
      const becomes = (status: number) =>
        until(`status ${status}`, async () => {
          await service.clock.advance(1_000)
          return (await readiness(service)).status === status
        })
      await becomes(200)
      await store.stop()
      await becomes(503)
      await store.restart()
      await becomes(200)
    })

    test('keeps runs waiting with outputs and references, beyond the time limit of a render', async () => {
      const engine = createInstantEngine()
      const service = await createStoredService({ engine })
      const withImage = await created(service, WITH_IMAGE)
      await store.stop()
      const without = await created(service)
      const statuses = () =>
        Promise.all([withImage, without].map(async (id) => (await runOf(service, id)).status))
      for (let minutes = 0; minutes < 20; minutes++) await service.clock.advance(60_000)
      expect(await statuses()).toEqual(['processing', 'processing'])
      await store.restart()
      for (const id of [withImage, without]) expect((await ended(service, id)).status).toBe('succeeded')
      // The engine was not called again for what it had made.
      expect(engine.jobs.map(({ references }) => references.length).sort()).toEqual([0, 1])
      expect(store.unfinishedUploads()).toEqual([])
      expect(service.complaints.join()).toContain('connection refused')
    })
  })

  describe('at its start', () => {
    const refusal = async (url: string, env: Record<string, string> = {}): Promise<RushesError> => {
      inEnvironment({ ...store.env, ...env })
      const error = await openStorage(url).then(
        () => undefined,
        (thrown: unknown) => thrown,
      )
      expect(error).toBeInstanceOf(RushesError)
      return error as RushesError
    }

    const none = { AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '', AWS_EC2_METADATA_DISABLED: 'true' }
    const nowhere = { AWS_CONFIG_FILE: '/dev/null', AWS_SHARED_CREDENTIALS_FILE: '/dev/null' }
    test.each([
      ['a bucket that does not exist', 's3://other/x', {}, 'NotFound (404)'],
      [
        'wrong credentials, which are not repeated',
        's3://bucket/x',
        { AWS_ACCESS_KEY_ID: 'AKIDWRONG', AWS_SECRET_ACCESS_KEY: 'a-secret' },
        'Unknown (403)',
      ],
      ['no credentials', 's3://bucket/x', { ...none, ...nowhere }, 'CredentialsProviderError'],
    ])('refuses %s', async (_name, url, env, reason) => {
      const { message, hint, code, cause } = await refusal(url, env)
      expect([code, message]).toEqual(['usage', `--storage cannot be used: ${reason}.`])
      expect(hint).toContain('the name of the bucket, the credentials and their rights')
      expect(`${message}${hint}${cause}`).not.toMatch(/AKIDWRONG|a-secret/)
    })

    test('warns about a storage that does not answer, and uses it later', async () => {
      await store.stop()
      const warnings: string[] = []
      const storage = await openStorage('s3://bucket/x', { warn: (line) => warnings.push(line) })
      expect(warnings).toEqual([expect.stringContaining('--storage does not answer: connection refused.')])
      await store.restart()
      await storage.files.put('token/a.png', { bytes: Buffer.from('a') })
      expect(store.keys()).toEqual(['x/token/a.png'])
    })
  })
})

test.each([
  ['s3://bucket', 'bucket', ''],
  ['s3://my.bucket-1/a', 'my.bucket-1', 'a/'],
  ['s3://bucket/a//b/', 'bucket', 'a/b/'],
  ['s3://bucket/with space/ü', 'bucket', 'with space/ü/'],
])('parses the storage URL %s', (url, bucket, prefix) => {
  expect(parseStorageUrl(url)).toEqual({ bucket, prefix })
})

test.each(['bucket', 's3://', 'gs://bucket/x', 's3://bucket/../x', 's3://bucket?x', 's3://bucket/a\\b'])(
  '%j is not a storage URL',
  (url) => {
    expect(() => parseStorageUrl(url)).toThrow('is not a valid storage URL')
  },
)

test('a storage URL with credentials is refused without repeating them', () => {
  expect(() => parseStorageUrl('s3://AKID:secret@bucket/x')).toThrow(
    /^--storage is not a valid storage URL\.$/,
  )
})
