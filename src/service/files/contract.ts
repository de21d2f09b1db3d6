/**
 * The contract of a store of files: outputs (`<token>/<name>`) and inputs (named by their SHA-256). A file never changes
 * once it is stored, since a key is random or made from the content.
 */

import type { Readable } from 'node:stream'
import type { Clock } from '../../host/clock.js'
import { retry, stepOf } from '../../host/retry.js'

/** Bytes from `start` to `end`, both included. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

export interface FoundFile {
  readonly bytes: number
  readonly modifiedAtMs: number
  /** All of it, or a part. */
  read(range?: ByteRange): Promise<Readable>
}

export interface PutOptions {
  /** Stored with the file where the store can. */
  readonly contentType?: string | undefined
  /** Once aborted, `put` rejects, and nothing is stored. */
  readonly signal?: AbortSignal | undefined
}

/** The request for which a URL is signed, and two headers of its response. */
export interface SignedRequest {
  readonly method: 'GET' | 'HEAD'
  readonly contentType: string
  readonly contentDisposition: string
}

export type FileSource = { readonly path: string } | { readonly bytes: Uint8Array }

export interface FileStore {
  /**
   * Stores a file from a path, which may be moved, or from bytes: complete, or not at all, and on the disk. When the key exists
   * with the same size, only its age is renewed. Rejects with `StorageUnavailable`, as all others do, without an answer.
   */
  put(key: string, source: FileSource, options?: PutOptions): Promise<void>
  /** Undefined only when the storage is there, and the file is not. */
  find(key: string): Promise<FoundFile | undefined>
  /** A secret URL, at which the file can be read for an hour without a key; undefined for a store that has none. */
  readonly signedUrl?: ((key: string, request: SignedRequest) => Promise<string>) | undefined
  /** Where the file is on this machine; undefined for a store elsewhere. */
  readonly pathOf?: ((key: string) => string) | undefined
  /** Does nothing for a key that is not stored. */
  remove(key: string): Promise<void>
  /** Every file that was stored more than `ageMs` ago. Throws for unreadable files after it has listed the others, if it can. */
  listOlder(ageMs: number): AsyncIterable<string>
}

/** Where the service keeps its files. */
export interface Storage {
  readonly outputs: FileStore
  /** Images that came as data: URLs, each named by its SHA-256. */
  readonly inputs: FileStore
  /** Rejects when files cannot be stored. */
  readonly check?: (() => Promise<void>) | undefined
  close?(): void
}

/** The storage does not answer. The operation had no effect, and may succeed later. */
export class StorageUnavailable extends Error {
  override readonly name = 'StorageUnavailable'
}

const STEPS_MS = [250, 500, 1_000, 2_000, 5_000] as const

interface StorageRetry {
  readonly clock: Pick<Clock, 'sleep'>
  readonly signal: AbortSignal
  onError(error: unknown): void
}

type StorageAnswer<Value> = { readonly value: Value } | { readonly unavailable: StorageUnavailable }

/** Does the work again while it fails with `StorageUnavailable`, until the signal is aborted. */
export const untilStorageAnswers = <Value>(
  work: () => Promise<Value>,
  { clock, signal, onError }: StorageRetry,
): Promise<Value> =>
  retry<StorageAnswer<Value>, Value>({
    clock,
    signal,
    attempt: () =>
      work().then(
        (value) => ({ value }),
        (error: unknown) => {
          if (error instanceof StorageUnavailable) return { unavailable: error }
          throw error
        },
      ),
    decide: (outcome, number) =>
      'value' in outcome ? { done: outcome.value } : { retryInMs: stepOf(STEPS_MS, number) },
    onRetry: (outcome) => 'unavailable' in outcome && onError(outcome.unavailable),
  })
