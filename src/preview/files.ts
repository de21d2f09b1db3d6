// Writes the output of the renderer, and finds the data files and the native code of its packages.
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { writeAtomically } from '../host/files.js'
import type { RenderedFile, RenderJob } from '../service/engines/engine.js'

/** Writes under a temporary name and renames, so that no incomplete file is visible. */
export async function writeOutput(
  { folder, signal, onProgress }: RenderJob,
  name: string,
  contentType: string,
  content: Uint8Array,
): Promise<RenderedFile> {
  const beforeReplace = () => signal.throwIfAborted()
  await writeAtomically(join(folder, name), content, { isFlushed: false, beforeReplace })
  onProgress?.(1)
  return { name, contentType }
}

/**
 * Returns the path of a file of a package. The build copies the file to `dist/parts/<name>`; in the source tree, the
 * file is in the package.
 */
export function packagedFile(name: string, specifier: string): string {
  const built = fileURLToPath(new URL(`./parts/${name}`, import.meta.url))
  return existsSync(built) ? built : createRequire(import.meta.url).resolve(specifier)
}
