/** Paths that an agent names: relative to the folder of the server, and inside of it, links resolved. */
import { statSync } from 'node:fs'
import { dirname, join, resolve, sep } from 'node:path'
import { namesFolder } from '../../download/target.js'
import { type RushesError, usageError } from '../../errors.js'
import { followLinks, isFolder, isWithin } from '../../host/directories.js'
import { shortened } from '../../protocol/text.js'

export interface Paths {
  /** Absolute, with a final separator for a folder. Undefined means the folder of the server. Throws `usage`. */
  output(path: string | undefined): string
  /** The absolute path of a file that is read. Throws `usage`. */
  file(path: string, parameter: string): string
}

export function createPaths(folder: string, allowOutside: boolean): Paths {
  const root = followLinks(folder)
  function refuseOutside(path: string, real: string, parameter: string): void {
    if (!allowOutside && !isWithin(root, real)) throw outside(path, parameter, folder)
  }
  return {
    output(path) {
      if (path === undefined) return `${folder}${sep}`
      const place = resolve(folder, path)
      const isPlace = namesFolder(path) || isFolder(place)
      if (dirname(isPlace ? join(place, 'file') : place).includes('{'))
        throw usageError(
          `output: ${shortened(path)} has a placeholder in the name of a folder.`,
          'Use placeholders in the file name only, such as assets/{id}.{ext}.',
        )
      // A link that is replaced by a file is itself replaced, so only the folder counts.
      refuseOutside(path, followLinks(isPlace ? place : dirname(place)), 'output')
      return isPlace ? `${place}${sep}` : place
    },
    file(path, parameter) {
      if (path.includes('\0')) throw usageError(`${parameter}: the path contains a NUL character.`)
      const place = resolve(folder, path)
      refuseOutside(path, followLinks(place), parameter)
      // Reading a pipe would hold up the whole server.
      if (isSpecial(place))
        throw usageError(
          `${parameter}: ${shortened(path)} is not a regular file.`,
          'Give the path of a file.',
        )
      return place
    },
  }
}

const outside = (path: string, parameter: string, folder: string): RushesError =>
  usageError(
    `${parameter}: ${shortened(path)} is outside ${folder}. Nothing was sent.`,
    'Use a path inside the folder of the server. `rushes mcp --allow-outside` allows others.',
  )

function isSpecial(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false })
  return found !== undefined && !found.isFile() && !found.isDirectory()
}
