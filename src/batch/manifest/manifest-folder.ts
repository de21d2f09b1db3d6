/** Resolves output paths: a manifest from elsewhere must not write outside its own folder, not even through a link. */
import { realpathSync } from 'node:fs'
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { errorCode } from '../../host/system-error.js'

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
    const found = follow(path)
    seen.set(path, found)
    return found
  }
  /** Resolves the longest part that exists; missing folders will be created as plain ones. */
  function follow(path: string): string {
    try {
      return realpathSync(path)
    } catch (error) {
      // Broken links, loops and files in the way are reported when the output file is checked.
      if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR')
        return dirname(path) === path ? path : join(real(dirname(path)), basename(path))
      return path
    }
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
      const path = relative(real(folder), realPathOf(output))
      return path !== '' && path !== '..' && !path.startsWith(`..${sep}`) && !isAbsolute(path)
    },
  }
}
