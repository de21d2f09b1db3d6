/**
 * Files in an S3 bucket, below a prefix. An upload becomes visible when it is complete. All errors are
 * `StorageUnavailable`. The storage's clock sets the time of an object; this machine's clock decides whether a listed
 * object is older.
 */
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { PassThrough, type Readable } from 'node:stream'
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  type HeadObjectCommandOutput,
  ListObjectsV2Command,
  type S3Client,
} from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { onAbort } from '../../host/abort.js'
import {
  type ByteRange,
  type FileSource,
  type FileStore,
  type PutOptions,
  StorageUnavailable,
} from './contract.js'
import { asStorageError, isMissing, isNotFound } from './s3-errors.js'

const SIGNED_FOR_S = 3_600

export interface S3FilesOptions {
  readonly client: S3Client
  /** Its requests have the time that a part takes. Default: `client`. */
  readonly uploads?: S3Client
  readonly bucket: string
  /** Empty, or ends with a slash. */
  readonly prefix: string
  /** Maximum number of keys in one response of a list. Default: the storage's default, usually 1,000. */
  readonly pageSize?: number | undefined
}

const bytesOf = async (source: FileSource): Promise<number> =>
  'bytes' in source ? source.bytes.byteLength : (await stat(source.path)).size

export function createS3Files({
  client,
  uploads = client,
  bucket,
  prefix,
  pageSize,
}: S3FilesOptions): FileStore {
  const objectAt = (key: string) => ({ Bucket: bucket, Key: `${prefix}${key}` })

  /**
   * Returns undefined for a 404. The response has no body, so the 404 can be about the object or the bucket, or come
   * from a proxy.
   */
  const fetchHead = (key: string): Promise<HeadObjectCommandOutput | undefined> =>
    client.send(new HeadObjectCommand(objectAt(key))).catch((error) => {
      if (isNotFound(error)) return undefined
      throw asStorageError(error, 'HeadObject')
    })

  /** Returns undefined only if the body of a second response says that the object is missing. */
  async function findHead(key: string): Promise<HeadObjectCommandOutput | undefined> {
    const head = await fetchHead(key)
    if (head !== undefined) return head
    try {
      const { Body } = await client.send(new GetObjectCommand({ ...objectAt(key), Range: 'bytes=0-0' }))
      ;(Body as Readable).destroy()
    } catch (error) {
      if (isMissing(error)) return undefined
      throw asStorageError(error, 'GetObject')
    }
    // The object was stored after the first request.
    const stored = await fetchHead(key)
    if (stored === undefined)
      throw new StorageUnavailable('HeadObject: NotFound (404), and GetObject finds it')
    return stored
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
      const head = await fetchHead(key)
      // Compares sizes, because a storage that stores in several steps may have kept a part if it was stopped in
      // between.
      const bytes = await bytesOf(source)
      if (head?.ContentLength === bytes) return
      signal?.throwIfAborted()
      // The size is read before the file is opened: an error of a stream without a reader would end the process.
      const Body = 'bytes' in source ? source.bytes : createReadStream(source.path)
      const upload = new Upload({
        client: uploads,
        params: { ...objectAt(key), ContentType: contentType, Body },
        partSize: Math.max(MIN_PART_BYTES, Math.ceil(bytes / MAX_PARTS)),
        queueSize: CONCURRENT_PARTS,
      })
      const forget = onAbort(signal, () => void upload.abort())
      try {
        await upload.done()
      } catch (error) {
        signal?.throwIfAborted()
        throw asStorageError(error, 'Upload')
      } finally {
        forget()
        if (!(Body instanceof Uint8Array)) Body.destroy()
      }
    },
    async find(key) {
      const head = await findHead(key)
      return (
        head && {
          bytes: head.ContentLength ?? 0,
          modifiedAtMs: head.LastModified?.getTime() ?? 0,
          read: (range) => read(key, range),
        }
      )
    },
    async signedUrl(key, { method, contentType, contentDisposition }) {
      const request = {
        ...objectAt(key),
        ResponseContentType: contentType,
        ResponseContentDisposition: contentDisposition,
      }
      const command = method === 'HEAD' ? new HeadObjectCommand(request) : new GetObjectCommand(request)
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

const MIN_PART_BYTES = 8 * 1_048_576
const MAX_PARTS = 10_000
/** Maximum number of parts in flight. Each part is held in memory. */
const CONCURRENT_PARTS = 2
