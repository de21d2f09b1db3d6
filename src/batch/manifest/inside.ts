/** Where outputs really lie: a manifest from somewhere else must not write outside its own folder, links included. */
import { realpathSync } from 'node:fs'
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { errorCode } from '../../host/directories.js'

export interface Grounds {
  /** Absolute. */
  readonly folder: string
  /** The absolute path of a file with the links in its folders followed; separated by `/`. */
  placeOf(output: string): string
  isInside(output: string): boolean
}

export function groundsOf(folder: string): Grounds {
  const seen = new Map<string, string>()
  const real = (path: string): string => {
    const known = seen.get(path)
    if (known !== undefined) return known
    const found = follow(path)
    seen.set(path, found)
    return found
  }
  /** The longest part that exists decides; what is not there yet is made as a plain folder. */
  function follow(path: string): string {
    try {
      return realpathSync(path)
    } catch (error) {
      // A link that leads nowhere, a loop or a file in the way are told when the file is looked at.
      if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR')
        return dirname(path) === path ? path : join(real(dirname(path)), basename(path))
      return path
    }
  }
  const placeOf = (output: string): string => {
    const path = resolve(folder, output)
    return join(real(dirname(path)), basename(path))
      .split(sep)
      .join('/')
  }
  return {
    folder,
    placeOf,
    isInside(output) {
      // A drive letter means nothing here, but it will on the machine of a colleague.
      if (output.startsWith('/') || /^[A-Za-z]:/.test(output) || isAbsolute(output)) return false
      const way = relative(real(folder), placeOf(output))
      return way !== '' && way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way)
    },
  }
}
