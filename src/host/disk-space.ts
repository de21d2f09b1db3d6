import { statfsSync } from 'node:fs'

/** SQLite reports some failures of a full disk as I/O errors, and small writes may succeed while others fail. */
const MIN_FREE_BYTES = 1_048_576

/** Whether the disk of a folder is full, as far as the system tells. */
export function isDiskFull(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize < MIN_FREE_BYTES
  } catch {
    return false
  }
}
