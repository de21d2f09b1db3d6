// A file of a package: beside the program where that was built, which then needs no package; in the package itself where the
// program runs from its sources.
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

/** `name`: what the build calls it, in `dist/parts`. */
export function packagedFile(name: string, specifier: string): string {
  const built = fileURLToPath(new URL(`./parts/${name}`, import.meta.url))
  return existsSync(built) ? built : createRequire(import.meta.url).resolve(specifier)
}
