/** Where the bytes of one output land, over all tries: the part, and the path it is to have in the end. */
import { dirname } from 'node:path'
import { isFolder, makeFolders } from '../host/directories.js'
import { writing } from './file-errors.js'
import type { FileKind } from './file-kind.js'
import { awaitsExtension, withExtension } from './file-names.js'
import { refuseObstacle } from './move-into-place.js'
import { claimPart, createPart, type Listing, type PartKey } from './part-claim.js'
import type { Part } from './part-file.js'

export interface Landing {
  /** What there is from an earlier try, or an earlier command. */
  readonly part: Part | undefined
  /** `image`, `video`, …: what the run makes, as far as that is known. */
  readonly expects: string | undefined
  /** The final path, now that it is known what comes, with nothing in its way; and a part to write to. */
  open(kind: FileKind): Promise<{ readonly part: Part; readonly path: string }>
  /** No file comes of it now. Whether what has arrived was kept for a later command, which `mayComeLater` allows. */
  giveUp(mayComeLater: boolean): Promise<boolean>
}

export interface LandingOptions extends PartKey {
  readonly overwrite: boolean
  readonly expects: string | undefined
  /** The place is there for this command alone: nothing is kept. */
  readonly isPassing: boolean
  readonly list: Listing
}

/** Takes up the part of an earlier command, if there is one. */
export async function createLanding(options: LandingOptions): Promise<Landing> {
  const { overwrite, expects, isPassing, list, ...key } = options
  // Where even the folder waits for the kind of file, a later command could not find what this one leaves.
  const isFindable = !awaitsExtension(dirname(key.place))
  let part = isFindable ? await claimPart(key, list) : undefined
  return {
    expects,
    get part() {
      return part
    },
    async open({ extension }) {
      const path = withExtension(key.place, extension)
      // Said now rather than after two gigabytes.
      if (path !== key.place) refuseObstacle(path, overwrite)
      part ??= await writing(path, () => {
        if (!isFolder(dirname(path))) makeFolders(dirname(path))
        return createPart({ ...key, place: isFindable ? key.place : path })
      })
      return { part, path }
    },
    async giveUp(mayComeLater) {
      if (part === undefined) return false
      if (mayComeLater && isFindable && !isPassing) return part.release()
      await part.discard()
      return false
    },
  }
}
