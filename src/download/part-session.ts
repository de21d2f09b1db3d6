/** The part file of one output over all attempts, and the final path. */
import { dirname } from 'node:path'
import { isFolder, makeFolders } from '../host/directories.js'
import { withWriteErrors } from './file-errors.js'
import type { FileKind } from './file-kind.js'
import { awaitsExtension, withExtension } from './file-names.js'
import { refuseObstacle } from './move-into-place.js'
import { claimPart, createPart, type PartKey, type PartLister } from './part-claim.js'
import type { Part } from './part-file.js'

export interface PartSession {
  /** From an earlier attempt, or an earlier command. */
  readonly part: Part | undefined
  /** `image`, `video`, …: what the run makes, as far as that is known. */
  readonly expectedKind: string | undefined
  /** The final path, and a part to write to. Throws `download_failed` when something is in the way of that path. */
  open(kind: FileKind): Promise<{ readonly part: Part; readonly path: string }>
  /** The download failed. Keeps the part for a later command if `isWorthKeeping` and possible; whether it was kept. */
  abandon(isWorthKeeping: boolean): Promise<boolean>
}

export interface PartSessionOptions extends PartKey {
  readonly list: PartLister
  readonly overwrite: boolean
  readonly expectedKind: string | undefined
  /** The folder is removed after this command, so nothing is kept. */
  readonly isTemporary: boolean
}

/** Takes over the part that an earlier command left, if there is one. */
export async function openPartSession(options: PartSessionOptions): Promise<PartSession> {
  const { list, overwrite, expectedKind, isTemporary, ...key } = options
  // Where the folder's own name contains {ext}, a later command cannot find the part.
  const isFindable = !awaitsExtension(dirname(key.path))
  let part = isFindable ? await claimPart(key, list) : undefined
  return {
    expectedKind,
    get part() {
      return part
    },
    async open({ extension }) {
      const path = withExtension(key.path, extension)
      // Fail before downloading.
      if (path !== key.path) refuseObstacle(path, overwrite)
      part ??= await withWriteErrors(path, () => {
        if (!isFolder(dirname(path))) makeFolders(dirname(path))
        return createPart({ ...key, path: isFindable ? key.path : path })
      })
      return { part, path }
    },
    async abandon(isWorthKeeping) {
      if (part === undefined) return false
      if (isWorthKeeping && isFindable && !isTemporary) return part.release()
      await part.discard()
      return false
    },
  }
}
