/** An S3 store on a real port with a temporary folder: s3rver from `test/engines`. It does not check signatures. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { temporaryFolder } from './temporary-folder.js'

const ENGINES = fileURLToPath(new URL('../engines/', import.meta.url))

export const hasS3rver = existsSync(join(ENGINES, 'node_modules', 's3rver'))

/** The only credentials that s3rver accepts. */
const KEY = 'S3RVER'

export interface S3Store {
  readonly endpoint: string
  readonly bucket: string
  /** Environment variables for a process. `inEnvironment` sets them in this process. */
  readonly env: Readonly<Record<string, string>>
  /** Returns the keys of all objects. */
  keys(): readonly string[]
  read(key: string): Buffer
  etag(key: string): string
  contentType(key: string): string | undefined
  /** Returns the ids of multipart uploads that are neither complete nor aborted. */
  unfinishedUploads(): readonly string[]
  /** Answered requests, as `PUT /bucket/key?query`. */
  readonly requests: readonly string[]
  /** Calls the function for each request. If it returns true, it has answered the request. */
  intercept(handler: Interceptor | undefined): void
  stop(): Promise<void>
  /** Starts the store again on the same port, with the same objects. */
  restart(): Promise<void>
}

type Interceptor = (request: IncomingMessage, response: ServerResponse) => boolean

/** Starts a store that stops when the test ends. */
export async function startS3Store(): Promise<S3Store> {
  const bucket = 'bucket'
  const directory = temporaryFolder()
  const uploads = join(directory, bucket, '._S3rver_uploads')
  if (!isDesReplaced) replaceDes()
  isDesReplaced = true
  const S3rver = createRequire(ENGINES)('s3rver')
  const requests: string[] = []
  let interceptor: Interceptor | undefined
  let server: Server | undefined

  async function listen(port: number): Promise<void> {
    const s3 = new S3rver({ directory, silent: true, configureBuckets: [{ name: bucket }] })
    await s3.configureBuckets()
    correct(s3.store)
    const handle = s3.callback() as (request: IncomingMessage, response: ServerResponse) => void
    const created = createServer((request, response) => {
      requests.push(`${request.method} ${request.url}`)
      if (interceptor?.(request, response) || abortUpload(request, response)) return
      handle(request, response)
    })
    await new Promise<void>((resolve) => created.listen(port, '127.0.0.1', resolve))
    server = created
  }
  async function stop(): Promise<void> {
    const stopping = server
    server = undefined
    stopping?.closeAllConnections()
    await new Promise<void>((resolve) =>
      stopping === undefined ? resolve() : stopping.close(() => resolve()),
    )
  }

  /** Implements aborting an upload, because s3rver would remove the object with that key instead. */
  const abortUpload: Interceptor = ({ method, url }, response) => {
    const uploadId = new URL(url ?? '/', 'http://s3').searchParams.get('uploadId')
    if (method !== 'DELETE' || uploadId === null) return false
    const folder = join(uploads, uploadId)
    if (existsSync(folder)) {
      rmSync(folder, { recursive: true })
      response.writeHead(204).end()
    } else
      response
        .writeHead(404, { 'content-type': 'application/xml' })
        .end('<Error><Code>NoSuchUpload</Code><Message>It does not exist.</Message></Error>')
    return true
  }

  await listen(0)
  onTestFinished(stop)
  const { port } = (server as unknown as Server).address() as AddressInfo
  const endpoint = `http://127.0.0.1:${port}`
  const fileOf = (key: string, ending: string) => join(directory, bucket, key + ending)
  const files = () =>
    readdirSync(join(directory, bucket), { recursive: true, encoding: 'utf8' }).map((path) =>
      path.replaceAll('\\', '/'),
    )
  return {
    endpoint,
    bucket,
    env: {
      AWS_ENDPOINT_URL_S3: endpoint,
      AWS_ACCESS_KEY_ID: KEY,
      AWS_SECRET_ACCESS_KEY: KEY,
      AWS_REGION: 'us-east-1',
    },
    keys: () =>
      files()
        .filter((path) => path.endsWith(OBJECT))
        .map((path) => path.slice(0, -OBJECT.length))
        .sort(),
    read: (key) => readFileSync(fileOf(key, OBJECT)),
    etag: (key) => `"${readFileSync(fileOf(key, `${OBJECT}.md5`), 'utf8')}"`,
    contentType: (key) =>
      JSON.parse(readFileSync(fileOf(key, '._S3rver_metadata.json'), 'utf8'))['content-type'],
    unfinishedUploads: () => (existsSync(uploads) ? readdirSync(uploads) : []),
    requests,
    intercept: (handler) => {
      interceptor = handler
    },
    stop,
    restart: () => listen(port),
  }
}

const OBJECT = '._S3rver_object'

/** Replaces DES, which s3rver uses to encrypt page tokens: OpenSSL 3 no longer supports it. */
function replaceDes(): void {
  const crypto = createRequire(ENGINES)('crypto')
  for (const name of ['createCipheriv', 'createDecipheriv']) {
    const create = crypto[name]
    crypto[name] = (algorithm: string, key: Buffer, ...rest: readonly unknown[]) =>
      algorithm === 'des'
        ? create('des-ede3-cbc', Buffer.concat([key, key, key]), ...rest)
        : create(algorithm, key, ...rest)
  }
}

let isDesReplaced = false

/** s3rver treats an end of 0 as missing. This object is 0 as a number, but truthy. */
const TRUTHY_ZERO = Object(0)

/** What S3 does and s3rver does not: the range 0-0 is one byte. */
// biome-ignore lint/suspicious/noExplicitAny: s3rver has no types
function correct(store: any): void {
  const { getObject, listObjects } = store
  store.getObject = (bucket: string, key: string, options?: { start?: number; end?: number }) =>
    getObject.call(store, bucket, key, options?.end === 0 ? { ...options, end: TRUTHY_ZERO } : options)
  store.listObjects = (bucket: string, options: object) => {
    mkdirSync(store.getBucketPath(bucket), { recursive: true })
    return listObjects.call(store, bucket, options)
  }
}

/** Sets environment variables of this process until the test ends, because the SDK reads no others. */
export function inEnvironment(variables: Readonly<Record<string, string>>): void {
  const before = { ...process.env }
  for (const name of Object.keys(process.env)) if (name.startsWith('AWS_')) delete process.env[name]
  Object.assign(process.env, variables)
  onTestFinished(() => {
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name]
    Object.assign(process.env, before)
  })
}
