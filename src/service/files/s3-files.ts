/**
 * Files in an S3 bucket, below a prefix. An upload becomes visible when it is complete. Errors are `StorageUnavailable`.
 *
 * When a key exists, the object is copied onto itself: that is the only way to make its age begin anew. The age counts by
 * the storage's clock when it was stored, and by this machine's when it is listed.
 */
import { stat } from 'node:fs/promises'
import { PassThrough, type Readable } from 'node:stream'
import {
  CopyObjectCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  type HeadObjectCommandOutput,
  ListObjectsV2Command,
  type S3Client,
} from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import type { Clock } from '../../host/clock.js'
import type { ByteRange, FileSource, FileStore, PutOptions } from './contract.js'
import { asStorageError, isMissing, isNotFound } from './s3-errors.js'
import { createUploader } from './s3-upload.js'
import { StorageUnavailable } from './storage-unavailable.js'

const SIGNED_FOR_S = 3_600

/** A younger object is not copied: many creates with one image would write it many times. Retention begins at a minute. */
const RENEWED_AFTER_MS = 30_000

export interface S3FilesOptions {
  readonly client: S3Client
  readonly bucket: string
  /** Empty, or with a slash at its end. */
  readonly prefix: string
  readonly clock: Pick<Clock, 'now'>
  /** Whether outputs are read from the storage itself, by signed URLs. */
  readonly signsUrls: boolean
  /** Keys in one answer of a list; by default what the storage gives, mostly 1,000. */
  readonly pageSize?: number | undefined
}

const bytesOf = async (source: FileSource): Promise<number> =>
  'bytes' in source ? source.bytes.byteLength : (await stat(source.path)).size

export function createS3Files({
  client,
  bucket,
  prefix,
  clock,
  signsUrls,
  pageSize,
}: S3FilesOptions): FileStore {
  const { upload } = createUploader(client)
  const place = (key: string) => ({ Bucket: bucket, Key: `${prefix}${key}` })

  /** Undefined for a 404, which has no body here: it may be that of the object, of the bucket or of a proxy. */
  const askHead = (key: string): Promise<HeadObjectCommandOutput | undefined> =>
    client.send(new HeadObjectCommand(place(key))).catch((error) => {
      if (isNotFound(error)) return undefined
      throw asStorageError(error, 'HeadObject')
    })

  /** What is missing is proven to be: by an answer with a body that says so. */
  async function findHead(key: string): Promise<HeadObjectCommandOutput | undefined> {
    const head = await askHead(key)
    if (head !== undefined) return head
    try {
      const { Body } = await client.send(new GetObjectCommand({ ...place(key), Range: 'bytes=0-0' }))
      ;(Body as Readable).destroy()
    } catch (error) {
      if (isMissing(error)) return undefined
      throw asStorageError(error, 'GetObject')
    }
    // It was stored meanwhile.
    const stored = await askHead(key)
    if (stored === undefined)
      throw new StorageUnavailable('HeadObject: NotFound (404), and GetObject finds it')
    return stored
  }

  async function read(key: string, range: ByteRange | undefined): Promise<Readable> {
    const Range = range && `bytes=${range.start}-${range.end}`
    const { Body } = await explained('GetObject', client.send(new GetObjectCommand({ ...place(key), Range })))
    return withStorageErrors(Body as Readable)
  }

  async function renew(key: string, head: HeadObjectCommandOutput): Promise<void> {
    if (clock.now() - ageStart(head) < RENEWED_AFTER_MS) return
    const { Bucket, Key } = place(key)
    const CopySource = `${Bucket}/${Key.split('/').map(encodeURIComponent).join('/')}`
    // Without REPLACE, a copy of an object onto itself is refused.
    const metadata = { MetadataDirective: 'REPLACE', ContentType: head.ContentType } as const
    await explained(
      'CopyObject',
      client.send(new CopyObjectCommand({ Bucket, Key, CopySource, ...metadata })),
    )
  }

  return {
    async put(key, source, { contentType, signal }: PutOptions = {}) {
      const head = await askHead(key)
      // A storage that stores in several steps, and was stopped meanwhile, may have kept a part.
      if (head !== undefined && head.ContentLength === (await bytesOf(source))) return await renew(key, head)
      try {
        await upload({ ...place(key), ContentType: contentType }, source, signal)
      } catch (error) {
        signal?.throwIfAborted()
        throw asStorageError(error, 'Upload')
      }
    },
    async find(key) {
      const head = await findHead(key)
      return (
        head && {
          bytes: head.ContentLength ?? 0,
          modifiedAtMs: ageStart(head),
          read: (range) => read(key, range),
        }
      )
    },
    ...(signsUrls && {
      async signedUrl(key, { method, contentType, contentDisposition }) {
        const request = {
          ...place(key),
          ResponseContentType: contentType,
          ResponseContentDisposition: contentDisposition,
        }
        const command = method === 'HEAD' ? new HeadObjectCommand(request) : new GetObjectCommand(request)
        return await explained('Signing a URL', getSignedUrl(client, command, { expiresIn: SIGNED_FOR_S }))
      },
    }),
    async remove(key) {
      await explained('DeleteObject', client.send(new DeleteObjectCommand(place(key))))
    },
    async *listOlder(ageMs) {
      let ContinuationToken: string | undefined
      do {
        const page = await explained(
          'ListObjectsV2',
          client.send(
            new ListObjectsV2Command({
              Bucket: bucket,
              Prefix: prefix,
              MaxKeys: pageSize,
              ContinuationToken,
            }),
          ),
        )
        for (const { Key, LastModified } of page.Contents ?? [])
          if (Key !== undefined && LastModified !== undefined && clock.now() - LastModified.getTime() > ageMs)
            yield Key.slice(prefix.length)
        ContinuationToken = page.IsTruncated ? page.NextContinuationToken : undefined
      } while (ContinuationToken !== undefined)
    },
  }
}

const ageStart = ({ LastModified }: Pick<HeadObjectCommandOutput, 'LastModified'>): number =>
  LastModified?.getTime() ?? 0

async function explained<Answer>(operation: string, answer: Promise<Answer>): Promise<Answer> {
  try {
    return await answer
  } catch (error) {
    throw asStorageError(error, operation)
  }
}

/** The connection of a body that nobody reads to its end is closed. */
function withStorageErrors(body: Readable): Readable {
  const stream = new PassThrough()
  body.on('error', (error) => stream.destroy(asStorageError(error, 'GetObject') as Error))
  stream.on('close', () => body.destroy())
  return body.pipe(stream)
}
