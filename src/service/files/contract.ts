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
  read(range?: ByteRange): Readable
}

export interface FileStore {
  /**
   * Stores a file from a path, which may be moved, or from bytes: complete, or not at all. When the key exists, only its
   * age begins anew.
   */
  put(key: string, source: { readonly path: string } | { readonly bytes: Uint8Array }): Promise<void>
  find(key: string): Promise<FoundFile | undefined>
  /** A URL at which anybody can read the file for an hour; undefined for a store that has none. */
  readonly signedUrl?: ((key: string, contentType: string) => Promise<string>) | undefined
  /** Where the file is on this machine; undefined for a store elsewhere. */
  readonly pathOf?: ((key: string) => string) | undefined
  /** Does nothing for a key that is not stored. */
  remove(key: string): Promise<void>
  /** Every file that was stored more than `ageMs` ago. */
  listOlder(ageMs: number): AsyncIterable<string>
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
  for await (const chunk of found.read()) chunks.push(chunk as Uint8Array)
  return Buffer.concat(chunks)
}
