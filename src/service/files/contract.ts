/**
 * The contract of a file store. The key of a file begins with the id of its run: `run_x/inputs/<sha256>`, and for outputs
 * `run_x/<random>/<name>`. A stored file never changes.
 */
import type { Readable } from 'node:stream'
import type { Clock } from '../../host/clock.js'
import { retryErrors, stepOf } from '../../host/retry.js'

/** Bytes from `start` to `end`, both included. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

export interface FoundFile {
  readonly bytes: number
  /** Reads the whole file, or a range of it. */
  read(range?: ByteRange): Promise<Readable>
}

export interface PutOptions {
  /** Stored with the file if the store supports it. */
  readonly contentType?: string | undefined
  /** Aborts `put`, which then rejects and stores nothing. */
  readonly signal?: AbortSignal | undefined
}

export type FileSource = { readonly path: string } | { readonly bytes: Uint8Array }

export interface FileReader {
  /** Returns undefined only if the storage responds and does not have the file. */
  find(key: string): Promise<FoundFile | undefined>
  /**
   * Returns a secret URL, with which the file can be read for one hour without an API key. Undefined if the store has
   * no signed URLs.
   */
  readonly signedUrl?: ((key: string, contentType: string) => Promise<string>) | undefined
}

export interface FileWriter {
  /**
   * Stores a file completely or not at all, and resolves when it is on the disk. A source file may be moved.
   * If the storage does not respond, rejects with `StorageUnavailable`, as all other methods do.
   */
  put(key: string, source: FileSource, options?: PutOptions): Promise<void>
  /** Removes a file. Does nothing if the key is not stored. */
  remove(key: string): Promise<void>
}

export interface FileStore extends FileReader, FileWriter {
  /** Returns the path of the file on this machine. Undefined for a remote store. */
  readonly pathOf?: ((key: string) => string) | undefined
  /** Removes all files whose key begins with the id of this run. */
  removeBelow(runId: string): Promise<void>
}

export const OWNER_KEY = 'database-id'

/** Where the service stores files. */
export interface Storage {
  /** Inputs and outputs of runs. The file `OWNER_KEY` has the id of the database whose files are here. */
  readonly files: FileStore
  /** Rejects if files cannot be stored. */
  readonly check?: (() => Promise<void>) | undefined
  close?(): void
}

/** The storage does not respond. The operation had no effect. A retry may succeed later. */
export class StorageUnavailable extends Error {
  override readonly name = 'StorageUnavailable'
}

const STEPS_MS = [250, 500, 1_000, 2_000, 5_000] as const

interface StorageRetry {
  readonly clock: Clock
  readonly signal: AbortSignal
  onError(error: unknown): void
}

/** Retries `work` while it rejects with `StorageUnavailable`, until the signal is aborted. */
export const untilStorageAnswers = <Value>(
  work: () => Promise<Value>,
  { clock, signal, onError }: StorageRetry,
): Promise<Value> =>
  retryErrors(work, {
    pauseMs: (error, number) => (error instanceof StorageUnavailable ? stepOf(STEPS_MS, number) : undefined),
    onRetry: onError,
    clock,
    signal,
  })
