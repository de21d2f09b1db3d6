// The path of a package's file: the build copies it into `dist/parts`; from the sources it is in the package.
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

/** `name` is the file's name in `dist/parts`. */
export function packagedFile(name: string, specifier: string): string {
  const built = fileURLToPath(new URL(`./parts/${name}`, import.meta.url))
  return existsSync(built) ? built : createRequire(import.meta.url).resolve(specifier)
}
