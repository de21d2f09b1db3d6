/** Whether a file that was downloaded is still where it was written. */
import { statSync } from 'node:fs'
import type { JournalFile } from '../../journal/index.js'

/** By its size: reading a film to compare its hash would take too long. */
export const isOnDisk = ({ path, bytes }: Pick<JournalFile, 'path' | 'bytes'>): boolean => {
  try {
    return statSync(path).size === bytes
  } catch {
    return false
  }
}
