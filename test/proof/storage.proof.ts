/**
 * Outputs in a bucket: the memory of a large upload, and OpenStack Swift, which checks signatures and is a second S3
 * interface beside that of `npm test`.
 */
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CreateBucketCommand, ListMultipartUploadsCommand, S3Client } from '@aws-sdk/client-s3'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FileStore } from '../../src/service/files/contract.js'
import { createS3Files } from '../../src/service/files/s3-files.js'
import { filesContract, readStored } from '../contract/files.js'
import { createPlace, type Running, rushes, start } from '../support/binary.js'
import { peakMiB, resetPeak } from '../support/process-memory.js'
import { tableOfFigures } from '../support/proof/figures.js'
import { hasSwift, type Swift, startSwift } from '../support/proof/swift.js'
import { hasS3rver, startS3Store } from '../support/s3-store.js'
import { temporaryFolder } from '../support/service.js'

const MB = 1_048_576
const BUCKET = 'media'

const note = tableOfFigures()

async function serving(env: Readonly<Record<string, string>>, engine: string, ...flags: readonly string[]) {
  const words = ['--port', '0', '--storage', `s3://${BUCKET}/team`, '--engine', `image=${engine}`]
  const service = start(createPlace().with(env), ['serve', ...words, ...flags])
  await service.prints('stdout', /RUSHES_VIDEO_MODEL=.*\n/)
  const lines = service.printed.stdout.matchAll(/^export (\w+)=(.*)$/gm)
  const variables = [...lines].map(([, name = '', value = '']) => [name, value])
  return { service, place: createPlace().with(Object.fromEntries(variables)) }
}

const endOf = async (service: Running) => {
  service.kill('SIGTERM')
  return await service.ended
}

test.skipIf(!hasS3rver || process.platform !== 'linux')(
  '200 MB are uploaded with little memory',
  async () => {
    const store = await startS3Store(BUCKET)
    const size = 200_000_000
    const { service, place } = await serving(
      store.env,
      `head -c ${size} /dev/zero > "$RUSHES_OUTPUT_DIR/big.bin"`,
    )
    const { pid } = service
    const before = peakMiB(pid)
    resetPeak(pid)
    const startedAt = performance.now()
    expect(await rushes(place, ['run', 'image', 'a fox'])).toMatchObject({ code: 0 })
    note('200 MB upload', {
      'MiB before': before,
      'MiB at most': peakMiB(pid),
      seconds: Math.round((performance.now() - startedAt) / 100) / 10,
    })
    expect(peakMiB(pid)).toBeLessThan(before + 120)
    expect(store.unfinishedUploads()).toEqual([])
    expect(await endOf(service)).toMatchObject({ code: 0 })
  },
)

if (!hasSwift)
  process.stdout.write(
    'Swift is not installed (swift-proxy, swift-object, swift-container, swift-account): its tests are skipped.\n',
  )

describe.skipIf(!hasSwift)('on OpenStack Swift', () => {
  const folder = mkdtempSync(join(tmpdir(), 'rushes-swift-'))
  let swift: Swift
  let client: S3Client
  let count = 0

  const clientWith = (secretAccessKey: string) =>
    new S3Client({
      endpoint: swift.endpoint,
      region: 'us-east-1',
      forcePathStyle: true,
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      expectContinueHeader: false,
      credentials: { accessKeyId: swift.accessKeyId, secretAccessKey },
    })
  const filesWith = (s3: S3Client, pageSize?: number): FileStore =>
    createS3Files({
      client: s3,
      bucket: BUCKET,
      prefix: `${count++}/`,
      pageSize,
    })
  const signed = { method: 'GET', contentType: 'video/mp4', contentDisposition: 'inline' } as const
  const sign = async (files: FileStore, key: string) => (await files.signedUrl?.(key, signed)) ?? ''
  const environment = () => ({
    AWS_ENDPOINT_URL_S3: swift.endpoint,
    AWS_ACCESS_KEY_ID: swift.accessKeyId,
    AWS_SECRET_ACCESS_KEY: swift.secretAccessKey,
  })

  beforeAll(async () => {
    swift = await startSwift(folder)
    client = clientWith(swift.secretAccessKey)
    await client.send(new CreateBucketCommand({ Bucket: BUCKET }))
  })
  afterAll(async () => {
    client?.destroy()
    await swift?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  filesContract(
    () => {
      const work = join(temporaryFolder(), 'work')
      mkdirSync(work)
      return { files: filesWith(client), work }
    },
    // The age of an object is its server's.
    { canAge: false, canGoAway: false },
  )

  test('copying an object onto itself renews its age', async () => {
    const files = createS3Files({
      client,
      bucket: BUCKET,
      prefix: `${count++}/`,
      // Old enough to be renewed.
    })
    const key = 'token/Größe 100% + more & "so on" #1?.png'
    await files.put(key, { bytes: Buffer.from('content') }, { contentType: 'image/png' })
    const before = await files.find(key)
    expect(before).toBeDefined()
    while (Date.now() - (before?.modifiedAtMs ?? 0) < 2_000)
      await new Promise((resolve) => setTimeout(resolve, 50))
    await files.put(key, { bytes: Buffer.from('another') })
    const after = await files.find(key)
    expect(after?.modifiedAtMs).toBeGreaterThan(before?.modifiedAtMs ?? 0)
    expect(await readStored(files, key, 100)).toEqual(Buffer.from('content'))
  })

  test('a signed URL serves ranges with a strong ETag; changed, or without its signature, it serves nothing', async () => {
    const files = filesWith(client)
    const key = `token/it's + "odd" & ü.mp4`
    await files.put(key, { bytes: Buffer.from('abcdefghij') })
    const url = await sign(files, key)
    const whole = await fetch(url)
    expect([whole.status, await whole.text(), whole.headers.get('content-type')]).toEqual([
      200,
      'abcdefghij',
      'video/mp4',
    ])
    const etag = whole.headers.get('etag') ?? ''
    expect(etag).toMatch(/^"[^"]+"$/)
    const rest = await fetch(url, { headers: { range: 'bytes=4-', 'if-range': etag } })
    expect([rest.status, await rest.text(), rest.headers.get('etag')]).toEqual([206, 'efghij', etag])
    const longer = await fetch(url.replace('X-Amz-Expires=3600', 'X-Amz-Expires=36000'))
    const otherKey = await fetch(url.replace('/token/', '/tokem/'))
    const unsigned = await fetch(url.split('?')[0] ?? '')
    expect([longer.status, otherKey.status]).toEqual([403, 403])
    // Swift takes it for a request of its own interface.
    expect(unsigned.status).toBe(400)
  })

  test('a wrong secret is a usage error at the start, and is not repeated', async () => {
    const env = { ...environment(), AWS_SECRET_ACCESS_KEY: 'not-the-secret' }
    const words = ['serve', '--port', '0', '--storage', `s3://${BUCKET}/team`]
    const { code, stderr } = await start(createPlace().with(env), words).ended
    expect(code).toBe(2)
    expect(stderr).toContain('SignatureDoesNotMatch (403)')
    expect(stderr).not.toContain('not-the-secret')
  })

  test('stores a large file completely, and leaves no parts of an aborted upload', async () => {
    const files = filesWith(client)
    const bytes = randomBytes(30 * MB)
    const path = join(temporaryFolder(), 'clip.mp4')
    writeFileSync(path, bytes)
    await files.put('token/clip.mp4', { path })
    expect(bytes.equals((await readStored(files, 'token/clip.mp4', 40 * MB)) ?? Buffer.of())).toBe(true)
    const stop = new AbortController()
    setTimeout(() => stop.abort(new Error('closing')), 50)
    await expect(files.put('token/other.mp4', { path }, { signal: stop.signal })).rejects.toThrow('closing')
    expect(await files.find('token/other.mp4')).toBeUndefined()
    const left = await client.send(new ListMultipartUploadsCommand({ Bucket: BUCKET }))
    expect(left.Uploads ?? []).toEqual([])
  })

  test.each([[]])('killed and restarted while runs are made, no run is lost', async (...flags) => {
    const engine = 'head -c 400000 /dev/urandom > "$RUSHES_OUTPUT_DIR/big.bin"; sleep 0.2'
    const { service, place } = await serving(environment(), engine, '--concurrency', '4', ...flags)
    const created = rushes(place, ['run', 'image', 'a fox', '-n', '15', '-d', '--json', '--timeout', '5m'])
    await service.prints('stdout', /./)
    await new Promise((resolve) => setTimeout(resolve, 2_500))
    await swift.stop()
    const stoppedAt = performance.now()
    await new Promise((resolve) => setTimeout(resolve, 4_000))
    await swift.start()
    const awaySeconds = Math.round((performance.now() - stoppedAt) / 100) / 10
    const { code, stdout, stderr } = await created
    expect([code, stderr]).toEqual([0, expect.any(String)])
    const runs = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(runs).toHaveLength(15)
    const sums = new Set<string>()
    for (const { files } of runs) for (const { sha256 } of files) sums.add(sha256)
    expect(sums.size).toBe(15)
    note(`Swift away${flags.join('')}`, { 'seconds away': awaySeconds, runs: runs.length, failed: 0 })
    const left = await client.send(new ListMultipartUploadsCommand({ Bucket: BUCKET }))
    expect(left.Uploads ?? []).toEqual([])
    expect(await endOf(service)).toMatchObject({ code: 0 })
  })
})
