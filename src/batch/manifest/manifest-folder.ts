/** Resolves output paths: a manifest from elsewhere must not write outside its own folder, not even through a link. */
import { basename, dirname, isAbsolute, join, resolve, sep } from 'node:path'
import { followLinks, isWithin } from '../../host/directories.js'

export interface ManifestFolder {
  /** Absolute. */
  readonly folder: string
  /** Absolute path of a file with the links in its folders resolved; separated by `/`. */
  realPathOf(output: string): string
  isInside(output: string): boolean
}

export function createManifestFolder(folder: string): ManifestFolder {
  const seen = new Map<string, string>()
  const real = (path: string): string => {
    const known = seen.get(path)
    if (known !== undefined) return known
    const found = followLinks(path, real)
    seen.set(path, found)
    return found
  }
  const realPathOf = (output: string): string => {
    const path = resolve(folder, output)
    return join(real(dirname(path)), basename(path))
      .split(sep)
      .join('/')
  }
  return {
    folder,
    realPathOf,
    isInside(output) {
      // The manifest may be used on Windows, where a drive letter is an absolute path.
      if (output.startsWith('/') || /^[A-Za-z]:/.test(output) || isAbsolute(output)) return false
      const [root, path] = [real(folder), realPathOf(output)]
      return resolve(path) !== root && isWithin(root, resolve(path))
    },
  }
}
