/** Paths that an agent gives. They are relative to the folder of the server and must be inside it, links resolved. */
import { statSync } from 'node:fs'
import { dirname, join, resolve, sep } from 'node:path'
import { namesFolder } from '../../download/file-names.js'
import { usageError } from '../../errors.js'
import { followLinks, isFolder, isWithin } from '../../host/file-system.js'
import { shortened } from '../../protocol/text.js'
import type { SessionOptions } from './session.js'

type Root = Pick<SessionOptions, 'folder' | 'allowOutside'>

function refuseOutside({ folder, allowOutside }: Root, path: string, real: string, parameter: string): void {
  if (!allowOutside && !isWithin(followLinks(folder), real))
    throw usageError(
      `${parameter}: ${shortened(path)} is outside ${folder}. Nothing was sent.`,
      'Use a path inside the folder of the server. `rushes mcp --allow-outside` allows others.',
    )
}

/** Returns an absolute path, with a final separator for a folder. Without a path, the folder of the server. Throws `usage`. */
export function outputIn(root: Root, path: unknown): string {
  if (typeof path !== 'string') return `${root.folder}${sep}`
  const fullPath = resolve(root.folder, path)
  const isFolderPath = namesFolder(path) || isFolder(fullPath)
  if (dirname(isFolderPath ? join(fullPath, 'file') : fullPath).includes('{'))
    throw usageError(
      `output: ${shortened(path)} has a placeholder in the name of a folder.`,
      'Use placeholders in the file name only, such as assets/{id}.{ext}.',
    )
  // Check only the folder: a link at the path itself would be replaced by the file.
  refuseOutside(root, path, followLinks(isFolderPath ? fullPath : dirname(fullPath)), 'output')
  return isFolderPath ? `${fullPath}${sep}` : fullPath
}

/** Returns the absolute path of a file that is read. Throws `usage`. */
export function fileIn(root: Root, path: string, parameter: string): string {
  if (path.includes('\0')) throw usageError(`${parameter}: the path contains a null character.`)
  const fullPath = resolve(root.folder, path)
  refuseOutside(root, path, followLinks(fullPath), parameter)
  const found = statSync(fullPath, { throwIfNoEntry: false })
  // Reading a pipe would block the whole server.
  if (found !== undefined && !found.isFile() && !found.isDirectory())
    throw usageError(`${parameter}: ${shortened(path)} is not a regular file.`, 'Give the path of a file.')
  return fullPath
}
