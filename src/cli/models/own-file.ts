/** Writes files of models into the config and state folders. Loads the code for it only then. */
import { dirname } from 'node:path'

/** Replaces or creates the file, and its folder, for their user only. Throws the system's errors. */
export async function writeOwnFile(path: string, content: string, options: { isFlushed?: boolean } = {}) {
  const [{ makeFolders }, { writeAtomically }] = await Promise.all([
    import('../../host/directories.js'),
    import('../../host/files.js'),
  ])
  makeFolders(dirname(path), 0o700)
  await writeAtomically(path, content, { ...options, mode: 0o600 })
}
