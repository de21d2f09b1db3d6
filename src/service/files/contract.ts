/**
 * The contract of a store of files: outputs (`<token>/<name>`) and inputs (named by their SHA-256). A file never changes
 * once it is stored, since a key is random or made from the content.
 */
import type { Readable } from 'node:stream'

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
   * Stores a file from a path, which may be moved, or from bytes: complete, or not at all, and on the disk. When the key exists with
   * the same size, only its age begins anew. Rejects with `StorageUnavailable`, as all others do, when the storage cannot be asked.
   */
  put(key: string, source: FileSource, options?: PutOptions): Promise<void>
  /** Undefined only when the storage is there, and the file is not. */
  find(key: string): Promise<FoundFile | undefined>
  /** A URL at which anybody can read the file for an hour, so it is a secret; undefined for a store that has none. */
  readonly signedUrl?: ((key: string, request: SignedRequest) => Promise<string>) | undefined
  /** Where the file is on this machine; undefined for a store elsewhere. */
  readonly pathOf?: ((key: string) => string) | undefined
  /** Does nothing for a key that is not stored. */
  remove(key: string): Promise<void>
  /** Every file that was stored more than `ageMs` ago. What cannot be read is an error after all others were listed, where it can be. */
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

/** The whole file, or undefined when it is not there or larger. */
export async function readStored(
  files: Pick<FileStore, 'find'>,
  key: string,
  maxBytes: number,
): Promise<Uint8Array | undefined> {
  const found = await files.find(key)
  if (found === undefined || found.bytes > maxBytes) return undefined
  const chunks: Uint8Array[] = []
  for await (const chunk of await found.read()) chunks.push(chunk as Uint8Array)
  return Buffer.concat(chunks)
}
