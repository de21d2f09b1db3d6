/**
 * A file that is still coming in. It lies in a hidden folder beside its place, since only within one file system a
 * rename is one step: `bytes`, and `about.json` once the host has told by what the file is known. `claim.ts` says how the
 * folder is called and whose it is.
 *
 * The bytes of one version of a file are never written over by those of another: what begins anew has a file of its own.
 * So whoever still holds the old one open (a process of another machine or container, whose id says nothing here) writes
 * to a file without a name, or writes the very bytes that are there.
 */
import { createHash, type Hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, open, rename, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { flush, removeFile, writeFully } from '../host/files.js'
import { keepAbout } from './part-metadata.js'
import { type About, usefulBytes, validatorOf } from './resume-plan.js'

export interface Part {
  /** Of the bytes. */
  readonly path: string
  readonly bytes: number
  /** Undefined: there is nothing to go on from. */
  readonly about: About | undefined
  /** Empties it for what is to come. */
  begin(about: About | undefined): Promise<void>
  /** May return before the chunk is written, which must not change; what becomes of it is told by the next call. */
  write(chunk: Uint8Array): Promise<void>
  /** Rejects with what became of the last write. */
  settled(): Promise<void>
  /** The first bytes. */
  head(bytes: number): Promise<Uint8Array>
  /** Looks through what an earlier process has written, so that `seal` can tell what the whole file holds. */
  takeUp(signal: AbortSignal | undefined): Promise<void>
  /** Everything was written: waits for the disk, and tells what the file holds. */
  seal(): Promise<{ readonly bytes: number; readonly sha256: string }>
  /** Leaves it for a later process, if that can be of use; whether it was. Never throws. */
  release(): Promise<boolean>
  /** Removes it, or what is left of it; never throws. */
  discard(): Promise<void>
}

export interface Found {
  /** The folder's name while it is ours, and when it is nobody's. */
  readonly own: string
  readonly free: string
  readonly handle: FileHandle
  readonly bytes: number
  readonly about: About | undefined
}

/** Killed on the way, so small a file is fetched anew; a signal and the network leave time to write down what it is. */
const SMALL_BYTES = 262_144

/** Whether it is written down from the start what the file is. */
const isNoted = (about: About | undefined): about is About =>
  about !== undefined &&
  validatorOf(about) !== undefined &&
  (about.totalBytes ?? SMALL_BYTES + 1) > SMALL_BYTES

export const bytesIn = (folder: string): string => join(folder, 'bytes')
export const aboutIn = (folder: string): string => join(folder, 'about.json')

/** Its mode is what the umask leaves of 0666, as of any file that a user makes. */
export const newBytesIn = (folder: string): Promise<FileHandle> => open(bytesIn(folder), 'wx+', 0o666)

export function partOf({ own, free, ...found }: Found): Part {
  const path = bytesIn(own)
  let { handle, bytes, about } = found
  /** Of the first `bytes` bytes; undefined when an earlier process has written them. */
  let hash: Hash | undefined = bytes === 0 ? createHash('sha256') : undefined
  /** The write that is under way, while the next bytes are hashed and come in. */
  let writing = Promise.resolve()
  const discard = async (): Promise<void> => {
    await writing.catch(() => {})
    await handle.close().catch(() => {})
    if (isNoted(about)) await removeFile(aboutIn(own)).catch(() => {})
    // Empty where the bytes have their own name by now: two hundred files are not each searched for more.
    await rmdir(own).catch(() => rm(own, { recursive: true, force: true }).catch(() => {}))
  }
  return {
    path,
    get bytes() {
      return bytes
    },
    get about() {
      return about
    },
    async begin(next) {
      await writing
      if (bytes > 0 || about !== undefined) {
        // First: killed in between, nobody must take the new bytes for those of the old file.
        await removeFile(aboutIn(own))
        await handle.close()
        await removeFile(path)
        handle = await newBytesIn(own)
      }
      hash = createHash('sha256')
      bytes = 0
      about = next
      if (isNoted(about)) await keepAbout(aboutIn(own), about)
    },
    async write(chunk) {
      await writing
      const at = bytes
      bytes += chunk.byteLength
      writing = writeFully(handle, chunk, at).catch((error) => {
        bytes = at
        hash = undefined
        throw error
      })
      // Whoever writes on or seals is told.
      writing.catch(() => {})
      hash?.update(chunk)
    },
    settled: () => writing,
    async head(most) {
      await writing
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(most), 0, most, 0)
      return buffer.subarray(0, bytesRead)
    },
    async takeUp(signal) {
      if (hash !== undefined) return
      const found = createHash('sha256')
      for await (const chunk of createReadStream(path, { end: bytes - 1, signal }))
        found.update(chunk as Uint8Array)
      hash = found
    },
    async seal() {
      await writing
      await flush(handle)
      if (hash === undefined) throw new Error('a part was sealed before it was taken up')
      return { bytes, sha256: hash.copy().digest('hex') }
    },
    async release() {
      try {
        await writing
        if (about === undefined || usefulBytes(about, bytes) === 0) throw new Error('of no use')
        await flush(handle)
        await keepAbout(aboutIn(own), { ...about, flushedBytes: bytes }, { isFlushed: true })
        await handle.close()
        await rename(own, free)
        return true
      } catch {
        // Also where a neighbour has left its own part there: one is enough.
        await discard()
        return false
      }
    },
    discard,
  }
}
