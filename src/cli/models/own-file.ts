/** Writes files of models into the config and state folders. */
import { dirname } from 'node:path'
import { makeFolders } from '../../host/directories.js'
import { writeAtomically } from '../../host/files.js'

/** Replaces or creates the file, and its folder, for their user only. Throws the system's errors. */
export async function writeOwnFile(path: string, content: string, options: { isFlushed?: boolean } = {}) {
  makeFolders(dirname(path), 0o700)
  await writeAtomically(path, content, { ...options, mode: 0o600 })
}
