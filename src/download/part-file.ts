/**
 * A file that is being downloaded. It is in a hidden folder beside the target, since a rename is atomic within one file
 * system only: `bytes`, and `about.json` once the host has sent a validator, for a small file only when its download is
 * interrupted. `part-claim.ts` names the folder.
 *
 * The bytes of one version of a file are never overwritten by those of another: a restart creates a new file. A process of
 * another machine or container, whose process id means nothing here, may still have the old one open; it then writes to an
 * unlinked file, or writes the very same bytes.
 */
import { createHash, type Hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, open, rename, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { flush, removeFile, writeFully } from '../host/files.js'
import { removeFolder } from '../host/own-folder.js'
import { writeMetadata } from './part-metadata.js'
import { type PartMetadata, usefulBytes, validatorOf } from './resume-plan.js'

export interface Part {
  /** Of the bytes. */
  readonly path: string
  readonly bytes: number
  /** Undefined: the download cannot be resumed. */
  readonly metadata: PartMetadata | undefined
  /** Empties the part, for a file with this metadata. */
  restart(metadata: PartMetadata | undefined): Promise<void>
  write(chunks: readonly Uint8Array[]): Promise<void>
  /** The first bytes. */
  head(bytes: number): Promise<Uint8Array>
  /** Hashes what an earlier process has written; needed before `seal`. */
  hashExisting(signal: AbortSignal | undefined): Promise<void>
  /** The file is complete: flushes it to the disk. */
  seal(): Promise<{ readonly bytes: number; readonly sha256: string }>
  /** Leaves the part for a later process, if the download can be resumed; whether it can. Never throws. */
  release(): Promise<boolean>
  /** Removes it, or what is left of it. Never throws. */
  discard(): Promise<void>
}

/** A smaller file is downloaded again after a kill: `about.json` would be a third of its calls to the file system. */
const SMALL_BYTES = 262_144

/** Whether `about.json` is written when the download begins, not only when it is interrupted. */
const isStoredEarly = (metadata: PartMetadata | undefined): metadata is PartMetadata =>
  metadata !== undefined &&
  validatorOf(metadata) !== undefined &&
  (metadata.totalBytes ?? Number.POSITIVE_INFINITY) > SMALL_BYTES

export interface FoundPart {
  /** The folder's name while this process owns it, and when nobody does. */
  readonly own: string
  readonly free: string
  readonly handle: FileHandle
  readonly bytes: number
  readonly metadata: PartMetadata | undefined
}

export const bytesPath = (folder: string): string => join(folder, 'bytes')
export const metadataPath = (folder: string): string => join(folder, 'about.json')

/** The mode is 0666 less the umask, as for any file that a user creates. */
export const createBytes = (folder: string): Promise<FileHandle> => open(bytesPath(folder), 'wx+', 0o666)

export function partOf({ own, free, ...found }: FoundPart): Part {
  const path = bytesPath(own)
  let { handle, bytes, metadata } = found
  /** Of the first `bytes` bytes; undefined while those of an earlier process are not hashed. */
  let hash: Hash | undefined = bytes === 0 ? createHash('sha256') : undefined
  const discard = async (): Promise<void> => {
    await handle.close().catch(() => {})
    if (isStoredEarly(metadata)) await removeFile(metadataPath(own)).catch(() => {})
    // In one step where the folder is empty, because the bytes have their final name.
    await rmdir(own).catch(() => removeFolder(own).catch(() => {}))
  }
  return {
    path,
    get bytes() {
      return bytes
    },
    get metadata() {
      return metadata
    },
    async restart(next) {
      if (bytes > 0 || metadata !== undefined) {
        // First, so that after a kill the new bytes are never taken for those of the old file.
        await removeFile(metadataPath(own))
        await handle.close()
        await removeFile(path)
        handle = await createBytes(own)
      }
      hash = createHash('sha256')
      bytes = 0
      metadata = next
      // So that the download can be resumed after a kill.
      if (isStoredEarly(metadata)) await writeMetadata(metadataPath(own), metadata)
    },
    async write(chunks) {
      const written = writeFully(handle, chunks, bytes)
      // Hash while they are being written.
      for (const chunk of chunks) hash?.update(chunk)
      await written
      for (const { byteLength } of chunks) bytes += byteLength
    },
    async head(maxBytes) {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(maxBytes), 0, maxBytes, 0)
      return buffer.subarray(0, bytesRead)
    },
    async hashExisting(signal) {
      if (hash !== undefined) return
      const existing = createHash('sha256')
      for await (const chunk of createReadStream(path, { end: bytes - 1, signal }))
        existing.update(chunk as Uint8Array)
      hash = existing
    },
    async seal() {
      await flush(handle)
      if (hash === undefined) throw new Error('the part was finished before its bytes were hashed')
      return { bytes, sha256: hash.copy().digest('hex') }
    },
    async release() {
      try {
        if (metadata === undefined || usefulBytes(metadata, bytes) === 0) throw new Error('not resumable')
        await flush(handle)
        await writeMetadata(metadataPath(own), { ...metadata, flushedBytes: bytes }, { isFlushed: true })
        await handle.close()
        await rename(own, free)
        return true
      } catch {
        // Also when another process has left its part there: one is enough.
        await discard()
        return false
      }
    },
    discard,
  }
}
