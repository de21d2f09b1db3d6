/** What is in a file: its beginning, and its hash without holding it in memory. Throws the system's errors. */
import { createHash } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'
import { open } from 'node:fs/promises'

/** The first bytes of a file, fewer for a shorter one. A pipe would wait for its writer. */
export function readBeginning(path: string, bytes: number): Buffer {
  const file = openSync(path, 'r')
  try {
    const buffer = Buffer.alloc(bytes)
    return buffer.subarray(0, readSync(file, buffer, 0, bytes, 0))
  } finally {
    closeSync(file)
  }
}

const CHUNK_BYTES = 1024 * 1024

/** In hexadecimal digits. Rejects with the signal's reason. */
export async function sha256OfFile(path: string, signal?: AbortSignal): Promise<string> {
  const hash = createHash('sha256')
  const handle = await open(path)
  try {
    const { size } = await handle.stat()
    const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, size + 1))
    for (;;) {
      signal?.throwIfAborted()
      const { bytesRead } = await handle.read(buffer)
      if (bytesRead === 0) break
      hash.update(buffer.subarray(0, bytesRead))
    }
  } finally {
    await handle.close()
  }
  return hash.digest('hex')
}
