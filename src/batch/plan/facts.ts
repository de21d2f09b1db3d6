/** Finds what exists at the path of each output. Only reads. */

import { lstatSync, type Stats, statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { basename, dirname, extname, posix, resolve } from 'node:path'
import { sha256OfFile } from '../../host/file-content.js'
import { describeReason, errorCode } from '../../host/system-error.js'
import { type LockEntry, type Made, type Output, outputsOf, placingsOf } from '../lock/lock.js'
import { mayBecome } from '../manifest/collisions.js'
import type { ManifestEntry } from '../manifest/manifest-entry.js'
import { createManifestFolder } from '../manifest/manifest-folder.js'
import type { FileFact } from './decide.js'
import { createOutputNames } from './output-names.js'

export interface PlannedOutput {
  /** Relative to the manifest, with `/`; ends in `.{ext}` where that is not known yet. */
  readonly file: string
  /** The name with which it is downloaded: ends in `.{ext}` unless an earlier file has told the extension. */
  readonly name: string
  readonly fact: FileFact
}

export interface Disk {
  /** What exists at the paths of the outputs: of all that the lock file knows, and of at least `count`. */
  lookAt(
    entry: ManifestEntry,
    locked: LockEntry | undefined,
    count?: number,
  ): Promise<readonly PlannedOutput[]>
  /** Whether a file of an entry is still there as it was made, by its length. */
  has(made: Made): Promise<boolean>
  /** The same disk, read anew. */
  again(): Disk
}

const OPEN = '.{ext}'

/** Each folder is listed once. */
export function diskOf(
  folder: string,
  entries: readonly ManifestEntry[],
  grounds = createManifestFolder(folder),
  names = createOutputNames(entries, grounds),
): Disk {
  const listings = new Map<string, Promise<readonly string[]>>()
  const list = (path: string): Promise<readonly string[]> => {
    const known = listings.get(path) ?? readdir(path).catch(() => [])
    listings.set(path, known)
    return known
  }

  /** The file that an output with an open extension has, or might have. */
  async function fileAt(name: string, { kind }: ManifestEntry, known: Output | undefined): Promise<string> {
    if (!name.endsWith(OPEN)) return name
    const stem = name.slice(0, -OPEN.length)
    if (known !== undefined && `${stem}${posix.extname(known.file)}` === known.file) return known.file
    const found = [...(await list(resolve(folder, dirname(name))))]
      .sort()
      .find(
        (each) =>
          each.startsWith(`${basename(stem)}.`) &&
          each === `${basename(stem)}${extname(each)}` &&
          mayBecome(kind, extname(each).slice(1)),
      )
    return found === undefined ? name : `${stem}${extname(found)}`
  }

  /** The known file at its former path. A lock file must not make us read outside the manifest's folder. */
  async function elsewhere(file: string, known: Output): Promise<string | undefined> {
    if (known.file === file || !grounds.isInside(known.file)) return undefined
    const path = resolve(folder, known.file)
    const fact = await factOf(path, [known.bytes])
    return fact.is === 'file' && fact.sha256 === known.sha256 ? path : undefined
  }

  interface Sought {
    readonly entry: ManifestEntry
    readonly name: string
    readonly known: Output | undefined
    /** Of the files that were about to get the name. */
    readonly placing: readonly number[]
  }

  async function lookAtOne({ entry, name, known, placing }: Sought): Promise<PlannedOutput> {
    const file = await fileAt(name, entry, known)
    const fact: FileFact = file.endsWith(OPEN)
      ? { is: 'missing' }
      : await factOf(resolve(folder, file), [known?.bytes, ...placing])
    if (known === undefined) return { file, name, fact }
    if (fact.is !== 'missing') return { file, name: file, fact }
    const from = await elsewhere(file, known)
    // The extension is that of the file which is copied.
    const target =
      from !== undefined && file.endsWith(OPEN)
        ? `${file.slice(0, -OPEN.length)}${posix.extname(known.file)}`
        : file
    return { file: target, name: target, fact: { is: 'missing', elsewhere: from } }
  }

  return {
    async lookAt(entry, locked, count = 1) {
      const known = outputsOf(locked?.made)
      const placings = placingsOf(locked)
      const length = Math.max(count, known.length, ...placings.map(({ output }) => output))
      const found: PlannedOutput[] = []
      for (let number = 1; number <= length; number++) {
        const output = known[number - 1]
        const isKept = number > 1 && output !== undefined && names.isNameOf(output.file, entry, number)
        const name = isKept ? output.file : names.nameOf(entry, number)
        const placing = placings.flatMap((each) => (each.output === number ? each.bytes : []))
        found.push(await lookAtOne({ entry, name, known: output, placing }))
      }
      return found
    },
    async has(made) {
      const found = outputsOf(made).map(({ file, bytes }) => {
        const stats = statOf(resolve(folder, file))
        return stats?.isFile() === true && stats.size === bytes
      })
      return found.includes(true)
    },
    again: () => diskOf(folder, entries, grounds, names),
  }
}

/** Follows a link to read it: assets that are links (git-annex, DVC) count as their content. */
async function factOf(path: string, lengths: readonly (number | undefined)[]): Promise<FileFact> {
  try {
    const found = statOf(path)
    // A dangling link is in the way too, and can be replaced.
    if (found === undefined) return isThere(path) ? { is: 'file', sha256: undefined } : { is: 'missing' }
    if (found.isDirectory()) return { is: 'other', what: 'a folder' }
    if (!found.isFile()) return { is: 'other', what: 'not a regular file' }
    // Another length means another file: it need not be read.
    return { is: 'file', sha256: lengths.includes(found.size) ? await sha256OfFile(path) : undefined }
  } catch (error) {
    return { is: 'other', what: describeReason(error) }
  }
}

/** Synchronous: of a thousand missing files each is looked up, and a thread for each is slower. */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes(errorCode(error) ?? '')) return undefined
    throw error
  }
}

function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined
  } catch {
    return false
  }
}
