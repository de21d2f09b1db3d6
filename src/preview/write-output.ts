// Writes an output under a temporary name and renames it, so that no partial file is visible.
import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

export async function writeOutput(
  folder: string,
  name: string,
  parts: readonly Uint8Array[],
  signal: AbortSignal,
): Promise<void> {
  const unfinished = join(folder, `.${name}.part`)
  try {
    await writeFile(unfinished, parts, { signal })
    signal.throwIfAborted()
    await rename(unfinished, join(folder, name))
  } catch (error) {
    await rm(unfinished, { force: true })
    // An aborted write fails with its own AbortError; the caller was promised the signal's reason.
    signal.throwIfAborted()
    throw error
  }
}
