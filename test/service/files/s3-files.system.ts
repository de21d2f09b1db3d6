/** The store of files on S3, against s3rver on a port. */
import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { S3Client } from '@aws-sdk/client-s3'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type FileStore, StorageUnavailable } from '../../../src/service/files/contract.js'
import { createS3Files } from '../../../src/service/files/s3-storage.js'
import { filesContract, readStored } from '../../contract/files.js'
import { temporaryFolder } from '../../support/index.js'
import { hasS3rver, type S3Store, startS3Store } from '../../support/s3-store.js'

const MB = 1_048_576

let store: S3Store
let clients: S3Client[] = []

function open({ pageSize = undefined as number | undefined, prefix = 'team/outputs/' } = {}) {
  const client = new S3Client({
    endpoint: store.endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    maxAttempts: 1,
    credentials: { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' },
  })
  clients.push(client)
  const work = join(temporaryFolder(), 'work')
  mkdirSync(work)
  const options = { client, bucket: store.bucket, prefix, pageSize }
  const takeAway = () => {
    answer(404, error('NoSuchBucket'))
    return () => store.intercept(undefined)
  }
  return { files: createS3Files(options), work, takeAway }
}

const error = (code: string) => `<?xml version="1.0"?><Error><Code>${code}</Code><Message>x</Message></Error>`

/** Every request is answered so; a HEAD without the body. */
const answer = (status: number, body: string) =>
  store.intercept(({ method }, response) => {
    response.writeHead(status, { 'content-type': body.startsWith('<?xml') ? 'application/xml' : 'text/html' })
    response.end(method === 'HEAD' ? undefined : body)
    return true
  })

const sign = async (files: FileStore, key: string) => (await files.signedUrl?.(key, 'video/mp4')) ?? ''

describe.skipIf(!hasS3rver)('on S3', () => {
  beforeEach(async () => {
    store = await startS3Store()
  })
  afterEach(() => {
    for (const client of clients) client.destroy()
    clients = []
  })

  filesContract(open)

  test.each(['Größe 100% + more & "so on" #1?.png', '写真.png'])(
    'the name %s is stored, signed and removed',
    async (name) => {
      const { files } = open()
      const key = `token/${name}`
      await files.put(key, { bytes: Buffer.from('content') })
      const signed = await fetch(await sign(files, key))
      expect([signed.status, await signed.text()]).toEqual([200, 'content'])
      await files.remove(key)
      expect(await files.find(key)).toBeUndefined()
    },
  )

  test.each([
    ['the bucket is missing', 404, error('NoSuchBucket')],
    ['a proxy has a page of its own', 404, '<html><head><title>Not Found</title></head></html>'],
    ['the credentials are refused', 403, error('AccessDenied')],
  ])('an object is not reported as missing when %s', async (_what, status, body) => {
    const { files } = open()
    answer(status, body)
    await expect(files.find('token/a.png')).rejects.toThrow(StorageUnavailable)
  })

  test('an object is missing only if the storage says so, and found once it is stored', async () => {
    const { files } = open()
    answer(404, error('NoSuchKey'))
    expect(await files.find('token/a.png')).toBeUndefined()
    store.intercept(undefined)
    await files.put('token/a.png', { bytes: Buffer.from('a') })
    let isFirst = true
    store.intercept(({ method }, response) => {
      if (method !== 'HEAD' || !isFirst) return false
      isFirst = false
      response.writeHead(404).end()
      return true
    })
    await expect(files.find('token/a.png')).rejects.toThrow(StorageUnavailable)
    expect(await files.find('token/a.png')).toMatchObject({ bytes: 1 })
  })

  test('a signed URL is valid for an hour and for its method', async () => {
    const { files } = open()
    await files.put('token/a.png', { bytes: Buffer.from('a') })
    const url = new URL(await sign(files, 'token/a.png'))
    expect(url.searchParams.get('X-Amz-Expires')).toBe('3600')
    expect(url.searchParams.get('X-Amz-SignedHeaders')).toBe('host')
    expect(url.pathname).toBe(`/${store.bucket}/team/outputs/token/a.png`)
  })

  test('removes more objects of a run than one page lists', async () => {
    const { files } = open({ pageSize: 5 })
    for (let n = 0; n < 12; n++) await files.put(`run_1/x/${n}.png`, { bytes: Buffer.from('x') })
    await files.put('run_2/x/a.png', { bytes: Buffer.from('x') })
    await files.removeBelow('run_1')
    expect(store.keys().filter((key) => key.includes('run_'))).toEqual([expect.stringContaining('run_2/')])
  })

  describe('a large file', () => {
    const bytes = randomBytes(20 * MB)
    const isStored = async (files: FileStore, key: string) =>
      bytes.equals((await readStored(files, key, bytes.byteLength)) ?? Buffer.of())
    const opened = () => {
      const { files, work } = open()
      const path = join(work, 'clip.mp4')
      writeFileSync(path, bytes)
      return { files, path }
    }

    test('uploads in parts, from a path and from bytes', async () => {
      const { files, path } = opened()
      await files.put('token/path.mp4', { path }, { contentType: 'video/mp4' })
      await files.put('token/bytes.mp4', { bytes })
      for (const key of ['token/path.mp4', 'token/bytes.mp4']) expect(await isStored(files, key)).toBe(true)
      const parts = store.requests.filter((request) => request.includes('partNumber='))
      expect(parts).toHaveLength(8)
      expect(store.unfinishedUploads()).toEqual([])
    })

    test('leaves no object when its upload is aborted', async () => {
      const { files, path } = opened()
      const stop = new AbortController()
      store.intercept(({ url = '' }) => {
        if (!url.includes('partNumber=2')) return false
        stop.abort(new Error('the service closes'))
        return true
      })
      await expect(files.put('token/clip.mp4', { path }, { signal: stop.signal })).rejects.toThrow(
        'the service closes',
      )
      expect(store.keys()).toEqual([])
    })

    test('leaves no object and no part when a part is refused', async () => {
      const { files, path } = opened()
      store.intercept(({ url = '' }, response) => {
        if (!url.includes('partNumber=1')) return false
        response.writeHead(503).end('<Error><Code>SlowDown</Code></Error>')
        return true
      })
      await expect(files.put('token/clip.mp4', { path })).rejects.toThrow('--storage: Upload: SlowDown (503)')
      expect(store.keys()).toEqual([])
      expect(store.unfinishedUploads()).toEqual([])
    })
  })

  test('a connection that breaks while a file is read is an error of the storage', async () => {
    const { files } = open()
    await files.put('ten', { bytes: Buffer.from('abcdefghij') })
    const found = await files.find('ten')
    store.intercept((_request, response) => {
      response.writeHead(200, { 'content-length': '10' }).write('abc', () => response.destroy())
      return true
    })
    await expect(readStored({ find: async () => found }, 'ten', 10)).rejects.toThrow(StorageUnavailable)
  })
})
