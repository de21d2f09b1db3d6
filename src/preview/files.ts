// Writes the output of the renderer, and finds the data files of its packages.
import { existsSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { replaceFile } from '../host/files.js'

/** Writes under a temporary name and renames, so that no incomplete file is visible. */
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
    await replaceFile(unfinished, join(folder, name))
  } catch (error) {
    await rm(unfinished, { force: true })
    // An aborted write rejects with an AbortError. Throw the signal's reason instead.
    signal.throwIfAborted()
    throw error
  }
}

/**
 * Returns the path of a file of a package. The build copies the file to `dist/parts/<name>`; in the source tree, the
 * file is in the package.
 */
export function packagedFile(name: string, specifier: string): string {
  const built = fileURLToPath(new URL(`./parts/${name}`, import.meta.url))
  return existsSync(built) ? built : createRequire(import.meta.url).resolve(specifier)
}
