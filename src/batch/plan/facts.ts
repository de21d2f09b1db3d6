/** Finds what exists at the path of each output. Only reads. */

import { lstatSync, type Stats, statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { basename, dirname, extname, posix, resolve } from 'node:path'
import { sha256OfFile } from '../../host/file-content.js'
import { describeReason, errorCode } from '../../host/system-error.js'
import type { LockEntry, Made } from '../lock/lock.js'
import { mayBecome } from '../manifest/collisions.js'
import type { ManifestEntry } from '../manifest/manifest-entry.js'
import { createManifestFolder } from '../manifest/manifest-folder.js'
import type { FileFact } from './decide.js'

export interface Found {
  /** Relative to the manifest, with `/`; ends in `.{ext}` where that is not known yet. */
  readonly file: string
  readonly fact: FileFact
}

export interface Disk {
  /** What exists at the path of an output. */
  lookAt(entry: ManifestEntry, locked: LockEntry | undefined): Promise<Found>
  /** Whether the file of an entry is still there as it was made, by its length. */
  has(made: Made): Promise<boolean>
}

const OPEN = '.{ext}'

/** Each folder is listed once. */
export function diskOf(folder: string): Disk {
  const listings = new Map<string, Promise<readonly string[]>>()
  const grounds = createManifestFolder(folder)
  const list = (path: string): Promise<readonly string[]> => {
    const known = listings.get(path) ?? readdir(path).catch(() => [])
    listings.set(path, known)
    return known
  }

  /** The file that a run with an open extension has, or might have. */
  async function fileOf({ output, kind }: ManifestEntry, made: Made | undefined): Promise<string> {
    if (!output.endsWith(OPEN)) return output
    const stem = output.slice(0, -OPEN.length)
    if (made !== undefined && `${stem}${posix.extname(made.file)}` === made.file) return made.file
    const names = await list(resolve(folder, dirname(output)))
    const beginning = `${basename(stem)}.`
    const found = [...names]
      .sort()
      .find(
        (name) =>
          name === `${basename(stem)}${extname(name)}` &&
          name.startsWith(beginning) &&
          mayBecome(kind, extname(name).slice(1)),
      )
    return found === undefined ? output : `${stem}${extname(found)}`
  }

  /** The known file at its former path. A lock file must not make us read outside the manifest's folder. */
  async function elsewhere(file: string, made: Made): Promise<string | undefined> {
    if (made.file === file || !grounds.isInside(made.file)) return undefined
    const path = resolve(folder, made.file)
    const fact = await factOf(path, [made.bytes])
    return fact.is === 'file' && fact.sha256 === made.sha256 ? path : undefined
  }

  return {
    async lookAt(entry, { made, pending } = { made: undefined, pending: undefined, further: {} }) {
      const placing = pending?.state === 'accepted' ? pending.placing : undefined
      const file = await fileOf(entry, made)
      const fact: FileFact = file.endsWith(OPEN)
        ? { is: 'missing' }
        : await factOf(resolve(folder, file), [made?.bytes, placing?.bytes])
      if (fact.is !== 'missing' || made === undefined) return { file, fact }
      const from = await elsewhere(file, made)
      // The extension is that of the file which is copied.
      const target =
        from !== undefined && file.endsWith(OPEN)
          ? `${file.slice(0, -OPEN.length)}${posix.extname(made.file)}`
          : file
      return { file: target, fact: { is: 'missing', elsewhere: from } }
    },
    async has(made) {
      const found = await statOf(resolve(folder, made.file)).catch(() => undefined)
      return found?.isFile() === true && found.size === made.bytes
    },
  }
}

/** Follows a link to read it: assets that are links (git-annex, DVC) count as their content. */
async function factOf(path: string, lengths: readonly (number | undefined)[]): Promise<FileFact> {
  try {
    const found = await statOf(path)
    // A dangling link is in the way too, and can be replaced.
    if (found === undefined)
      return (await isThere(path)) ? { is: 'file', sha256: undefined } : { is: 'missing' }
    if (found.isDirectory()) return { is: 'other', what: 'a folder' }
    if (!found.isFile()) return { is: 'other', what: 'not a regular file' }
    // Another length means another file: it need not be read.
    return { is: 'file', sha256: lengths.includes(found.size) ? await sha256OfFile(path) : undefined }
  } catch (error) {
    return { is: 'other', what: describeReason(error) }
  }
}

/** Synchronous: of a thousand missing files each is looked up, and a thread for each is slower. */
async function statOf(path: string): Promise<Stats | undefined> {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes(errorCode(error) ?? '')) return undefined
    throw error
  }
}

async function isThere(path: string): Promise<boolean> {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined
  } catch {
    return false
  }
}
