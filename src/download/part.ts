/** A file that is still coming in, under a temporary name. */
import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { flush, removeFile, temporaryBeside, writeFully } from '../host/files.js'

export interface Part {
  readonly path: string
  write(chunk: Uint8Array): Promise<void>
  /** Everything was written: waits for the disk, and tells what the file holds. */
  seal(): Promise<{ readonly bytes: number; readonly sha256: string }>
  /** Closes and removes the file; never throws. */
  discard(): Promise<void>
}

/**
 * Beside `finalPath`, since only within one file system a rename is one step. Its mode is what the umask leaves of
 * 0666, as of any file that a user makes. Throws the system's errors.
 */
export async function openPart(finalPath: string): Promise<Part> {
  const path = temporaryBeside(finalPath)
  const handle = await open(path, 'wx', 0o666)
  const hash = createHash('sha256')
  let bytes = 0
  return {
    path,
    async write(chunk) {
      await writeFully(handle, chunk)
      hash.update(chunk)
      bytes += chunk.byteLength
    },
    async seal() {
      await flush(handle)
      await handle.close()
      return { bytes, sha256: hash.digest('hex') }
    },
    async discard() {
      await handle.close().catch(() => {})
      await removeFile(path).catch(() => {})
    },
  }
}
