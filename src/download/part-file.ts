/**
 * A file that is being downloaded, in a hidden folder beside the target, because a rename is atomic only within one
 * file system. The folder contains `bytes`, and `about.json` after the host has sent a validator. For a small file,
 * `about.json` is written only after an interruption. `part-session.ts` names the folder.
 *
 * A restart creates a new file, so that bytes of one version never overwrite bytes of another. A process on another
 * machine or in a container, whose process id means nothing here, may still have the old file open. It then writes to
 * an unlinked file, or writes identical bytes.
 */
import { createHash, type Hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, open, readFile, rename, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { flush, removeFile, writeAtomically, writeFully } from '../host/files.js'
import { removeFolder } from '../host/own-folder.js'
import { type PartMetadata, usefulBytes, validatorOf } from './resume-plan.js'

export interface Part {
  /** Path of the file with the bytes. */
  readonly path: string
  readonly bytes: number
  /** Metadata of the file. Undefined: the download cannot be resumed. */
  readonly metadata: PartMetadata | undefined
  /** Empties the part for a new download of a file with this metadata. */
  restart(metadata: PartMetadata | undefined): Promise<void>
  write(chunks: readonly Uint8Array[]): Promise<void>
  /** Returns up to `bytes` first bytes. */
  head(bytes: number): Promise<Uint8Array>
  /** Hashes the bytes that an earlier process wrote. Required before `seal`. */
  hashExisting(signal: AbortSignal | undefined): Promise<void>
  /** Called when the file is complete: flushes it to disk. */
  seal(): Promise<{ readonly bytes: number; readonly sha256: string }>
  /** Keeps the part for a later process if the download can be resumed. Returns whether it was kept. Never throws. */
  release(): Promise<boolean>
  /** Removes the part. Never throws. */
  discard(): Promise<void>
}

/**
 * Smaller files are downloaded again if the process was killed: `about.json` would be a third of their file system
 * calls.
 */
const SMALL_BYTES = 262_144

/** Whether `about.json` is written when the download starts, not only after an interruption. */
const isStoredEarly = (metadata: PartMetadata | undefined): metadata is PartMetadata =>
  metadata !== undefined &&
  validatorOf(metadata) !== undefined &&
  (metadata.totalBytes ?? Number.POSITIVE_INFINITY) > SMALL_BYTES

interface FoundPart {
  /** Paths of the folder: `own` while this process owns it, `free` without an owner. */
  readonly own: string
  readonly free: string
  readonly handle: FileHandle
  readonly bytes: number
  readonly metadata: PartMetadata | undefined
}

export const bytesPath = (folder: string): string => join(folder, 'bytes')
export const metadataPath = (folder: string): string => join(folder, 'about.json')

/** Creates the file for the bytes. The umask applies to mode 0666, as for any file that a user creates. */
export const createBytes = (folder: string): Promise<FileHandle> => open(bytesPath(folder), 'wx+', 0o666)

export function partOf({ own, free, ...found }: FoundPart): Part {
  const path = bytesPath(own)
  let { handle, bytes, metadata } = found
  /** Hash of the first `bytes` bytes. Undefined until the bytes of an earlier process are hashed. */
  let hash: Hash | undefined = bytes === 0 ? createHash('sha256') : undefined
  const discard = async (): Promise<void> => {
    await handle.close().catch(() => {})
    if (isStoredEarly(metadata)) await removeFile(metadataPath(own)).catch(() => {})
    // A single call is enough if the folder is empty, because the bytes were moved to their final name.
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
        // Remove the metadata first: if the process is killed, a later process must not take the new bytes for bytes of
        // the old file.
        await removeFile(metadataPath(own))
        await handle.close()
        await removeFile(path)
        handle = await createBytes(own)
      }
      hash = createHash('sha256')
      bytes = 0
      metadata = next
      // Write the metadata now, so that the download can be resumed after a kill.
      if (isStoredEarly(metadata)) await writeMetadata(metadataPath(own), metadata)
    },
    async write(chunks) {
      const written = writeFully(handle, chunks, bytes)
      // Hash the chunks during the write.
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
        // The rename also fails if another process has left its part at this path: one part is enough.
        await discard()
        return false
      }
    },
    discard,
  }
}

/** `about.json`: shows a later process which file the bytes belong to. */
interface StoredMetadata extends PartMetadata {
  /** Number of bytes that were flushed to disk. */
  readonly flushedBytes?: number | undefined
}

/**
 * Writes `about.json` atomically. Without a flush it survives a killed process. After a crash of the machine it may be
 * invalid; the bytes are then not used.
 */
const writeMetadata = (
  path: string,
  metadata: StoredMetadata,
  { isFlushed = false }: { readonly isFlushed?: boolean } = {},
): Promise<void> => writeAtomically(path, `${JSON.stringify(metadata)}\n`, { isFlushed })

/** Returns undefined if the file is missing or invalid. */
export async function readMetadata(path: string): Promise<StoredMetadata | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(path, 'utf8'))
    return typeof value === 'object' && value !== null
      ? checked(value as Readonly<Record<string, unknown>>)
      : undefined
  } catch {
    return undefined
  }
}

function checked(value: Readonly<Record<string, unknown>>): StoredMetadata {
  const text = (each: unknown) => (typeof each === 'string' ? each : undefined)
  const number = (each: unknown) => (Number.isSafeInteger(each) ? (each as number) : undefined)
  return {
    etag: text(value.etag),
    lastModified: text(value.lastModified),
    contentType: text(value.contentType),
    totalBytes: number(value.totalBytes),
    flushedBytes: number(value.flushedBytes),
  }
}
