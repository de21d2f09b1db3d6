/**
 * `--storage s3://bucket/prefix`: stores outputs and inputs in an S3-compatible storage, so that all nodes can read
 * them. This file and the AWS SDK are loaded only with this option.
 *
 * The start asks for the bucket. If the storage refuses that, it throws a usage error. If the storage does not respond, it only
 * warns: nodes restart in any order, and runs wait for the storage.
 */
import { open } from 'node:fs/promises'
import { PassThrough, type Readable } from 'node:stream'
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  type HeadObjectCommandOutput,
  ListObjectsV2Command,
  S3Client,
} from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { usageError } from '../../errors.js'
import { onAbort } from '../../host/abort.js'
import {
  type ByteRange,
  type FileSource,
  type FileStore,
  type PutOptions,
  type Storage,
  StorageUnavailable,
} from './contract.js'
import { asStorageError, describeProblem, isMissing, isNotFound } from './s3-errors.js'

/** Timeouts of one attempt. The client makes three attempts. A part of an upload has 5 MiB. */
const CONNECT_TIMEOUT_MS = 2_000
const ANSWER_TIMEOUT_MS = 30_000
/** Maximum time without a byte in a response: the storage or the reader has stopped. */
const IDLE_TIMEOUT_MS = 60_000
const START_TIMEOUT_MS = 10_000
const CHECK_TIMEOUT_MS = 1_000

const DEFAULT_REGION = 'us-east-1'

export interface S3StorageOptions {
  /** For example, `s3://bucket/prefix`. */
  readonly url: string
  readonly env: Readonly<Record<string, string | undefined>>
  warn(message: string): void
}

interface BucketPath {
  readonly bucket: string
  /** Empty, or ends with a slash. */
  readonly prefix: string
}

/** Throws `RushesError` (usage) if the URL is invalid or the storage refuses an operation that the service needs. */
export async function openS3Storage({ url, env, warn }: S3StorageOptions): Promise<Storage> {
  const { bucket, prefix } = parseStorageUrl(url)
  const client = createClient(env)
  const findBucket = (limitMs: number) =>
    client.send(new HeadBucketCommand({ Bucket: bucket }), { abortSignal: AbortSignal.timeout(limitMs) })
  await findBucket(START_TIMEOUT_MS).catch((error) => {
    const { reason, isTemporary } = describeProblem(error)
    if (isTemporary) return warn(`--storage does not answer: ${reason}. Runs wait until it does. ${HINT}`)
    client.destroy()
    throw usageError(`--storage cannot be used: ${reason}.`, HINT)
  })
  return {
    files: createS3Files({ client, bucket, prefix }),
    check: async () => void (await orStorageError('HeadBucket', findBucket(CHECK_TIMEOUT_MS))),
    close: () => client.destroy(),
  }
}

export function parseStorageUrl(url: string): BucketPath {
  const [, bucket, path = ''] =
    /^s3:\/\/([a-z0-9][a-z0-9._-]{1,62})(?:\/([^?#\\\u0000-\u001f\u007f]*))?$/i.exec(url) ?? []
  const parts = path.split('/').filter((part) => part !== '')
  if (bucket === undefined || parts.some((part) => /^\.\.?$/.test(part)))
    // Does not print the URL, because it may contain a secret.
    throw usageError(
      '--storage is not a valid storage URL.',
      'Example: s3://bucket/prefix, with its credentials in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or a profile.',
    )
  return { bucket, prefix: parts.map((part) => `${part}/`).join('') }
}

function createClient(env: S3StorageOptions['env']): S3Client {
  const endpoint = env.AWS_ENDPOINT_URL_S3 || env.AWS_ENDPOINT_URL
  // Disables the SDK's advice to update Node.js: the SDK is part of the build, so users cannot follow the advice, and
  // the log has a different format.
  process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true'
  const agent = { keepAlive: true, maxSockets: Number.POSITIVE_INFINITY }
  const options = {
    region: env.AWS_REGION || env.AWS_DEFAULT_REGION || DEFAULT_REGION,
    // Storages other than AWS have no host name for each bucket.
    forcePathStyle: Boolean(endpoint),
    // Some storages do not support the newer checksums, which are the default.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    // The header costs one connection per part, and one second if the storage does not support it.
    expectContinueHeader: false,
    maxAttempts: 3,
    requestHandler: {
      connectionTimeout: CONNECT_TIMEOUT_MS,
      requestTimeout: ANSWER_TIMEOUT_MS,
      throwOnRequestTimeout: true,
      socketTimeout: IDLE_TIMEOUT_MS,
      // No limit here, because slow downloads would then delay the renderers. The service limits its own connections.
      httpAgent: agent,
      httpsAgent: agent,
    },
  } as const
  return new S3Client({ ...options, ...(endpoint && { endpoint }) })
}

const HINT =
  'Check the name of the bucket, the credentials and their rights (docs/operations.md), AWS_REGION and AWS_ENDPOINT_URL_S3.'

const SIGNED_FOR_S = 3_600

export interface S3FilesOptions {
  readonly client: S3Client
  readonly bucket: string
  /** Empty, or ends with a slash. */
  readonly prefix: string
  /** Maximum number of keys in one response of a list. Default: the storage's default, usually 1,000. */
  readonly pageSize?: number | undefined
}

/**
 * Files in a bucket, below a prefix. An upload becomes visible when it is complete. All errors are `StorageUnavailable`. The
 * storage's clock sets the time of an object.
 */
export function createS3Files({ client, bucket, prefix, pageSize }: S3FilesOptions): FileStore {
  const objectAt = (key: string) => ({ Bucket: bucket, Key: `${prefix}${key}` })

  /**
   * Returns undefined only if the body of a second response says that the object is missing: a 404 without a body can also be
   * about the bucket, or come from a proxy.
   */
  async function findHead(key: string): Promise<HeadObjectCommandOutput | undefined> {
    try {
      return await client.send(new HeadObjectCommand(objectAt(key)))
    } catch (error) {
      if (!isNotFound(error)) throw asStorageError(error, 'HeadObject')
    }
    try {
      const { Body } = await client.send(new GetObjectCommand({ ...objectAt(key), Range: 'bytes=0-0' }))
      ;(Body as Readable).destroy()
    } catch (error) {
      if (isMissing(error)) return undefined
      throw asStorageError(error, 'GetObject')
    }
    throw new StorageUnavailable('HeadObject: NotFound (404), and GetObject finds it')
  }

  async function read(key: string, range: ByteRange | undefined): Promise<Readable> {
    const Range = range && `bytes=${range.start}-${range.end}`
    const { Body } = await orStorageError(
      'GetObject',
      client.send(new GetObjectCommand({ ...objectAt(key), Range })),
    )
    return withStorageErrors(Body as Readable)
  }

  return {
    async put(key, source, { contentType, signal }: PutOptions = {}) {
      signal?.throwIfAborted()
      await upload(client, { ...objectAt(key), ContentType: contentType }, source, signal)
    },
    async find(key) {
      const head = await findHead(key)
      return (
        head && {
          bytes: head.ContentLength ?? 0,
          read: (range) => read(key, range),
        }
      )
    },
    async signedUrl(key, contentType) {
      const command = new GetObjectCommand({ ...objectAt(key), ResponseContentType: contentType })
      return await orStorageError('Signing a URL', getSignedUrl(client, command, { expiresIn: SIGNED_FOR_S }))
    },
    async remove(key) {
      await orStorageError('DeleteObject', client.send(new DeleteObjectCommand(objectAt(key))))
    },
    async removeBelow(runId) {
      let ContinuationToken: string | undefined
      do {
        const query = { Bucket: bucket, Prefix: `${prefix}${runId}/`, MaxKeys: pageSize, ContinuationToken }
        const page = await orStorageError('ListObjectsV2', client.send(new ListObjectsV2Command(query)))
        for (const { Key } of page.Contents ?? [])
          await orStorageError('DeleteObject', client.send(new DeleteObjectCommand({ Bucket: bucket, Key })))
        ContinuationToken = page.IsTruncated ? page.NextContinuationToken : undefined
      } while (ContinuationToken !== undefined)
    },
  }
}

async function upload(
  client: S3Client,
  object: { readonly Bucket: string; readonly Key: string; readonly ContentType: string | undefined },
  source: FileSource,
  signal: AbortSignal | undefined,
): Promise<void> {
  const Body = 'bytes' in source ? source.bytes : (await open(source.path)).createReadStream()
  // One part at a time: several would share the line, and each has the time of one answer.
  const started = new Upload({ client, params: { ...object, Body }, queueSize: 1 })
  const forget = onAbort(signal, () => void started.abort())
  try {
    await started.done()
  } catch (error) {
    signal?.throwIfAborted()
    throw asStorageError(error, 'Upload')
  } finally {
    forget()
    if (!(Body instanceof Uint8Array)) Body.destroy()
  }
}

async function orStorageError<Answer>(operation: string, answer: Promise<Answer>): Promise<Answer> {
  try {
    return await answer
  } catch (error) {
    throw asStorageError(error, operation)
  }
}

/** Converts the errors of a body. Closes its connection if the body is not read to the end. */
function withStorageErrors(body: Readable): Readable {
  const stream = new PassThrough()
  body.on('error', (error) => stream.destroy(asStorageError(error, 'GetObject') as Error))
  stream.on('close', () => body.destroy())
  return body.pipe(stream)
}
