/** The last step: a complete file gets its final name. */
import { lstatSync, type Stats, statSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { moveWithoutReplacing } from '../host/files.js'
import { printable } from '../protocol/text.js'
import { describeFileError, downloadFailed, withWriteErrors } from './file-errors.js'

export interface Obstacle {
  /** `fox.mp4 exists` */
  readonly message: string
  readonly hint: string | undefined
}

/**
 * What prevents a file at `path`, or undefined. An early check: `moveIntoPlace` is safe without it.
 *
 * `overwrite` replaces only files and links: as root, `-o /dev/null` would otherwise replace the device. A link itself is
 * replaced, not its target (curl writes through it), so that the file is complete from the first instant and nothing is
 * written outside the named folder.
 */
export function obstacleAt(path: string, overwrite: boolean): Obstacle | undefined {
  const named = printable(path)
  try {
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (found === undefined) return undefined
    if (found.isDirectory()) return { message: `${named} is a folder`, hint: `To save into it: -o ${named}/` }
    if (!overwrite) return { message: `${named} already exists`, hint: 'Use --overwrite to replace it.' }
    const target = found.isSymbolicLink() ? targetOf(path) : found
    if (target !== undefined && !target.isFile())
      return {
        message: `${named} is not a regular file and is not replaced`,
        hint: 'To write to standard output: -o -',
      }
    return undefined
  } catch (error) {
    return { message: `${named}: ${describeFileError(error)}`, hint: undefined }
  }
}

/** The target of a link, if it exists. */
function targetOf(path: string): Stats | undefined {
  try {
    return statSync(path)
  } catch {
    return undefined
  }
}

/** Throws `download_failed` for an obstacle. */
export function refuseObstacle(path: string, overwrite: boolean): void {
  const obstacle = obstacleAt(path, overwrite)
  if (obstacle !== undefined) throw downloadFailed(obstacle.message, { hint: obstacle.hint })
}

/** Renames the part. Without `overwrite` it never replaces a file, even in a race with another process. */
export async function moveIntoPlace(part: string, path: string, overwrite: boolean): Promise<void> {
  // The early check was before the download. Without `overwrite` the move itself checks.
  if (overwrite) refuseObstacle(path, overwrite)
  try {
    await withWriteErrors(path, () => (overwrite ? rename : moveWithoutReplacing)(part, path))
  } catch (error) {
    refuseObstacle(path, overwrite)
    throw error
  }
}
