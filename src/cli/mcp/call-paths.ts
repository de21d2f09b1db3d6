/**
 * Resolves paths that an agent gives. They are relative to the folder of the server and must be inside it, links
 * resolved.
 */
import { statSync } from 'node:fs'
import { dirname, join, resolve, sep } from 'node:path'
import { namesFolder } from '../../download/target.js'
import { type RushesError, usageError } from '../../errors.js'
import { followLinks, isFolder, isWithin } from '../../host/directories.js'
import { shortened } from '../../protocol/text.js'

export interface CallPaths {
  /** Absolute, with a final separator for a folder. Undefined means the folder of the server. Throws `usage`. */
  output(path: string | undefined): string
  /** The absolute path of a file that is read. Throws `usage`. */
  file(path: string, parameter: string): string
}

export function createPaths(folder: string, allowOutside: boolean): CallPaths {
  const root = followLinks(folder)
  function refuseOutside(path: string, real: string, parameter: string): void {
    if (!allowOutside && !isWithin(root, real)) throw outside(path, parameter, folder)
  }
  return {
    output(path) {
      if (path === undefined) return `${folder}${sep}`
      const fullPath = resolve(folder, path)
      const isFolderPath = namesFolder(path) || isFolder(fullPath)
      if (dirname(isFolderPath ? join(fullPath, 'file') : fullPath).includes('{'))
        throw usageError(
          `output: ${shortened(path)} has a placeholder in the name of a folder.`,
          'Use placeholders in the file name only, such as assets/{id}.{ext}.',
        )
      // Check only the folder: a link at the path itself would be replaced by the file.
      refuseOutside(path, followLinks(isFolderPath ? fullPath : dirname(fullPath)), 'output')
      return isFolderPath ? `${fullPath}${sep}` : fullPath
    },
    file(path, parameter) {
      if (path.includes('\0')) throw usageError(`${parameter}: the path contains a NUL character.`)
      const fullPath = resolve(folder, path)
      refuseOutside(path, followLinks(fullPath), parameter)
      // Reading a pipe would block the whole server.
      if (isSpecial(fullPath))
        throw usageError(
          `${parameter}: ${shortened(path)} is not a regular file.`,
          'Give the path of a file.',
        )
      return fullPath
    },
  }
}

const outside = (path: string, parameter: string, folder: string): RushesError =>
  usageError(
    `${parameter}: ${shortened(path)} is outside ${folder}. Nothing was sent.`,
    'Use a path inside the folder of the server. `rushes mcp --allow-outside` allows others.',
  )

/** Whether reading the path could block: a pipe or a device. */
function isSpecial(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false })
  return found !== undefined && !found.isFile() && !found.isDirectory()
}
