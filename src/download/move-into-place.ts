/** The last step: a whole file gets its own name. */
import { lstatSync, type Stats, statSync } from 'node:fs'
import { moveReplacing, moveWithoutReplacing } from '../host/files.js'
import { printable } from '../protocol/text.js'
import { failed, inWords, writing } from './file-errors.js'

export interface Obstacle {
  /** `fox.mp4 exists` */
  readonly message: string
  readonly hint: string | undefined
}

/**
 * What stands in the way of a file at `path`, or undefined. A look, no promise: `place` is safe without it.
 *
 * `overwrite` replaces files and links, and nothing else: as root, `-o /dev/null` would otherwise put a video in
 * place of the device. A link is replaced itself and what it leads to stays as it is (curl writes through it): only
 * so a file is whole from its first instant, and nothing is written outside the folder that was named.
 */
export function obstacleAt(path: string, overwrite: boolean): Obstacle | undefined {
  const named = printable(path)
  try {
    // Nearly always there is none: no error is made of that, two hundred times over.
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (found === undefined) return undefined
    if (found.isDirectory())
      return { message: `${named} is a folder`, hint: `Name a file in it: -o ${named}/` }
    if (!overwrite) return { message: `${named} exists`, hint: '--overwrite replaces it.' }
    const end = found.isSymbolicLink() ? endOf(path) : found
    if (end !== undefined && !end.isFile())
      return {
        message: `${named} is no ordinary file, and is not replaced`,
        hint: 'To write to standard output: -o -',
      }
    return undefined
  } catch (error) {
    return { message: `${named} cannot be written: ${inWords(error)}`, hint: undefined }
  }
}

/** What a link leads to, if anything. */
function endOf(path: string): Stats | undefined {
  try {
    return statSync(path)
  } catch {
    return undefined
  }
}

/** Throws `download_failed` when something is in the way. */
export function refuseObstacle(path: string, overwrite: boolean): void {
  const obstacle = obstacleAt(path, overwrite)
  if (obstacle !== undefined) throw failed(obstacle.message, { hint: obstacle.hint })
}

/** Renames the part. Without `overwrite` it never replaces anything, also in a race with another process. */
export async function place(part: string, path: string, overwrite: boolean): Promise<void> {
  // Between the first look and this one lies the whole download; without `overwrite` the step itself looks.
  if (overwrite) refuseObstacle(path, overwrite)
  try {
    await writing(path, () => (overwrite ? moveReplacing : moveWithoutReplacing)(part, path))
  } catch (error) {
    refuseObstacle(path, overwrite)
    throw error
  }
}
