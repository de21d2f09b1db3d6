/** Where the bytes of one output land, over all tries: the part, and the path it is to have in the end. */
import { dirname } from 'node:path'
import { makeFolders } from '../host/files.js'
import type { FileKind } from './kind.js'
import { awaitsExtension, withExtension } from './names.js'
import { claimPart, createPart, type Part, type PartKey } from './part.js'
import { refuseObstacle } from './place.js'
import { writing } from './trouble.js'

export interface Landing {
  /** What there is from an earlier try, or an earlier command. */
  readonly part: Part | undefined
  /** `image`, `video`, …: what the run makes, as far as that is known. */
  readonly expects: string | undefined
  /** The final path, now that it is known what comes, with nothing in its way; and a part to write to. */
  open(kind: FileKind): Promise<{ readonly part: Part; readonly path: string }>
}

export interface LandingOptions extends PartKey {
  readonly overwrite: boolean
  readonly expects: string | undefined
}

/** Takes up the part of an earlier command, if there is one. */
export async function createLanding({ overwrite, expects, ...key }: LandingOptions): Promise<Landing> {
  // Where even the folder waits for the kind of file, nothing can be found yet.
  let part = awaitsExtension(dirname(key.place)) ? undefined : await claimPart(key)
  return {
    expects,
    get part() {
      return part
    },
    async open({ extension }) {
      const path = withExtension(key.place, extension)
      // Said now rather than after two gigabytes.
      await refuseObstacle(path, overwrite)
      part ??= await writing(path, () => {
        makeFolders(dirname(path))
        return createPart({ ...key, place: awaitsExtension(dirname(key.place)) ? path : key.place })
      })
      return { part, path }
    },
  }
}
