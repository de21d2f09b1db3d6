/**
 * A file that is being downloaded, under a hidden name beside the target, because a rename is atomic only within one
 * file system. The name is unique: no other process writes to it, and a later command starts again.
 */
import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { flush, removeFile, temporaryBeside, writeFully } from '../host/files.js'
import type { PartMetadata } from './resume-plan.js'

export interface Part {
  readonly path: string
  readonly bytes: number
  /** Version of the file that the bytes belong to. Undefined: the download cannot be resumed. */
  readonly metadata: PartMetadata | undefined
  /** Empties the part for a new download of a file with this metadata. */
  restart(metadata: PartMetadata | undefined): Promise<void>
  write(chunks: readonly Uint8Array[]): Promise<void>
  /** Called when the file is complete: flushes it to disk. */
  seal(): Promise<{ readonly bytes: number; readonly sha256: string }>
  /** Removes the part. Never throws. */
  discard(): Promise<void>
}

/** Creates an empty part. The umask applies to mode 0666, as for any file that a user creates. */
export async function createPart(target: string, owner?: string): Promise<Part> {
  const path = temporaryBeside(target, owner)
  return partOf(path, await open(path, 'wx+', 0o666))
}

/** `handle`: of the empty file at `path`. */
export function partOf(path: string, handle: FileHandle): Part {
  let hash = createHash('sha256')
  let bytes = 0
  let metadata: PartMetadata | undefined
  return {
    path,
    get bytes() {
      return bytes
    },
    get metadata() {
      return metadata
    },
    async restart(next) {
      if (bytes > 0) await handle.truncate(0)
      hash = createHash('sha256')
      bytes = 0
      metadata = next
    },
    async write(chunks) {
      const written = writeFully(handle, chunks, bytes)
      // Hash the chunks during the write.
      for (const chunk of chunks) hash.update(chunk)
      await written
      for (const { byteLength } of chunks) bytes += byteLength
    },
    async seal() {
      await flush(handle)
      return { bytes, sha256: hash.copy().digest('hex') }
    },
    async discard() {
      await handle.close().catch(() => {})
      await removeFile(path).catch(() => {})
    },
  }
}
