/** Uploads one file to S3, in parts when it is large. An upload that fails is aborted, so that no parts are left behind. */
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import {
  AbortMultipartUploadCommand,
  CreateMultipartUploadCommand,
  type PutObjectCommandInput,
  type S3Client,
} from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import { onAbort } from '../../host/abort.js'
import type { FileSource } from './contract.js'

const MIN_PART_BYTES = 8 * 1_048_576
const MAX_PARTS = 10_000
/** Each is held in memory. */
const CONCURRENT_PARTS = 2
/** For one part: 8 MiB at 0.6 Mbit/s. */
const PART_TIMEOUT_MS = 120_000

export type UploadTarget = Pick<PutObjectCommandInput, 'Bucket' | 'Key' | 'ContentType'>

export interface Uploader {
  /** Rejects with the client's error, or with the signal's reason. */
  upload(target: UploadTarget, source: FileSource, signal?: AbortSignal): Promise<void>
}

export function createUploader(client: S3Client): Uploader {
  /** Uploads that could not be aborted because the storage was away, by key. */
  const abandoned = new Map<string, string>()

  async function abortAbandoned({ Bucket, Key = '' }: UploadTarget): Promise<void> {
    const UploadId = abandoned.get(Key)
    if (UploadId === undefined) return
    await client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId })).catch((error) => {
      if ((error as Error).name !== 'NoSuchUpload') throw error
    })
    abandoned.delete(Key)
  }

  return {
    async upload(target, source, signal) {
      signal?.throwIfAborted()
      await abortAbandoned(target)
      const stop = new AbortController()
      const forget = onAbort(signal, () => stop.abort())
      let failure: unknown
      let uploadId: string | undefined

      /** `Upload` would continue with the other parts when one has failed, and takes no signal for a part. */
      async function send(command: Parameters<S3Client['send']>[0]): Promise<unknown> {
        if (command instanceof AbortMultipartUploadCommand) {
          await client.send(command)
          uploadId = undefined
          return
        }
        try {
          const sent = await client.send(command, {
            abortSignal: stop.signal,
            requestTimeout: PART_TIMEOUT_MS,
          })
          if (command instanceof CreateMultipartUploadCommand)
            uploadId = (sent as { UploadId?: string }).UploadId
          return sent
        } catch (error) {
          failure ??= error
          stop.abort()
          throw error
        }
      }

      // Before the file is opened: an error of a stream that nobody reads would end the process.
      const bytes = 'bytes' in source ? source.bytes.byteLength : (await stat(source.path)).size
      const Body = 'bytes' in source ? source.bytes : createReadStream(source.path)
      try {
        await new Upload({
          client: Object.create(client, { send: { value: send } }) as S3Client,
          params: { ...target, Body },
          partSize: Math.max(MIN_PART_BYTES, Math.ceil(bytes / MAX_PARTS)),
          queueSize: CONCURRENT_PARTS,
        }).done()
      } catch (error) {
        if (uploadId !== undefined) abandoned.set(target.Key ?? '', uploadId)
        signal?.throwIfAborted()
        throw failure ?? error
      } finally {
        forget()
        if (!(Body instanceof Uint8Array)) Body.destroy()
      }
    },
  }
}
