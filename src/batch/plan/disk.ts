/** Finds what exists at the path of each output. Only reads. */

import { lstatSync, type Stats, statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { basename, dirname, extname, posix, resolve } from 'node:path'
import { sha256OfFile } from '../../host/files.js'
import { describeReason, errorCode } from '../../host/system-error.js'
import {
  type Lock,
  type LockEntry,
  type LockedOutput,
  type Made,
  outputsOf,
  placingsOf,
} from '../lock/lock.js'
import { createFileIndex, mayBecome, sameFileKey } from '../manifest/collisions.js'
import type { ManifestEntry } from '../manifest/manifest-entry.js'
import { createManifestFolder, type ManifestFolder, numbered } from '../manifest/output-paths.js'
import { type FileFact, isInPlace } from './decide.js'

export interface PlannedOutput {
  /** Relative to the manifest, with `/`; ends in `.{ext}` while that is not known. */
  readonly file: string
  /** The name with which it is downloaded: ends in `.{ext}` unless the extension is known from an earlier file. */
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
  has(made: Made): boolean
  /** Equal for names of one file, relative to the manifest: its folder may be reached through a link. */
  keyOf(file: string): string
  /** The same disk, read again. */
  again(): Disk
}

const OPEN = '.{ext}'

interface DiskOptions {
  /** Absolute: the manifest's. */
  readonly folder: string
  readonly entries: readonly ManifestEntry[]
  readonly lock: Lock
  /** Whether the files of this entry stay where they are: `--only` leaves out the row that may have it. */
  keepsFiles(name: string): boolean
  readonly allowOutside: boolean
}

/** Each folder is listed once. */
export function diskOf(
  options: DiskOptions,
  grounds = createManifestFolder(options.folder),
  names = createOutputNames(options.entries, grounds),
): Disk {
  const { folder } = options
  /** A lock file must not make us read outside the manifest's folder. */
  const mayRead = (file: string) => options.allowOutside || grounds.isInside(file)
  const keyOf = (file: string) => sameFileKey(grounds.realPathOf(file))
  const known = knownFilesOf(options, keyOf)
  const listings = new Map<string, Promise<readonly string[]>>()
  const list = (path: string): Promise<readonly string[]> => {
    const known = listings.get(path) ?? readdir(path).catch(() => [])
    listings.set(path, known)
    return known
  }

  /** The file that an output with an open extension has, or might have. */
  async function fileAt(
    name: string,
    { kind }: ManifestEntry,
    own: LockedOutput | undefined,
  ): Promise<string> {
    if (!name.endsWith(OPEN)) return name
    const stem = name.slice(0, -OPEN.length)
    if (own !== undefined && withExtensionOf(name, own) === own.file) return own.file
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

  /** The known file at its former path. */
  async function elsewhere(own: LockedOutput): Promise<string | undefined> {
    if (!mayRead(own.file)) return undefined
    const path = resolve(folder, own.file)
    const fact = await factOf(path, (bytes) => bytes === own.bytes)
    return fact.is === 'file' && fact.sha256 === own.sha256 ? path : undefined
  }

  interface Sought {
    readonly entry: ManifestEntry
    readonly name: string
    /** From the lock file. */
    readonly own: LockedOutput | undefined
    /** Lengths of files that an earlier batch was about to move to this path. */
    readonly placing: readonly number[]
  }

  async function factAt(file: string, { own, placing }: Sought): Promise<FileFact> {
    if (file.endsWith(OPEN)) return { is: 'missing' }
    const isCandidate = (bytes: number) =>
      bytes === own?.bytes || placing.includes(bytes) || known.hasBytes(bytes)
    const fact = await factOf(resolve(folder, file), isCandidate)
    if (fact.is !== 'file' || fact.sha256 === undefined || isOwn(file, fact, own)) return fact
    return mayRead(file) ? { ...fact, known: known.find(file, fact.sha256) } : fact
  }

  /** A file with the same bytes may belong to another entry, and then it will move away. */
  const isOwn = (file: string, fact: FileFact, own: LockedOutput | undefined): boolean =>
    own !== undefined && isInPlace(fact, own.sha256) && (isFileOf(own, file) || !known.has(file))

  const isFileOf = (own: LockedOutput, file: string): boolean =>
    own.file === file || keyOf(own.file) === keyOf(file)

  async function lookAtOne(sought: Sought): Promise<PlannedOutput> {
    const { entry, name, own } = sought
    const file = await fileAt(name, entry, own)
    const fact = await factAt(file, sought)
    if (own === undefined) return { file, name, fact }
    const isThere = fact.is === 'other' || isOwn(file, fact, own) || isFileOf(own, file)
    const from = isThere ? undefined : await elsewhere(own)
    if (from === undefined) return { file, name: file, fact }
    // The extension is that of the file which is moved.
    const target = name.endsWith(OPEN) ? withExtensionOf(name, own) : file
    const found = target === file ? fact : await factAt(target, sought)
    return { file: target, name: target, fact: found.is === 'other' ? found : { ...found, elsewhere: from } }
  }

  return {
    async lookAt(entry, locked, count = 1) {
      const owned = outputsOf(locked?.made)
      const placings = placingsOf(locked)
      const length = Math.max(count, owned.length, ...placings.map(({ output }) => output))
      const found: PlannedOutput[] = []
      for (let number = 1; number <= length; number++) {
        const own = owned[number - 1]
        const isKept = number > 1 && own !== undefined && names.isNameOf(own.file, entry, number)
        const name = isKept ? own.file : names.nameOf(entry, number)
        const placing = placings.flatMap((each) => (each.output === number ? each.bytes : []))
        found.push(await lookAtOne({ entry, name, own, placing }))
      }
      return found
    },
    has: (made) =>
      outputsOf(made).some(({ file, bytes }) => {
        const stats = statOf(resolve(folder, file))
        return stats?.isFile() === true && stats.size === bytes
      }),
    keyOf,
    again: () => diskOf(options, grounds, names),
  }
}

/** The name with the extension of an output. */
const withExtensionOf = (name: string, { file }: LockedOutput): string =>
  `${name.slice(0, -OPEN.length)}${posix.extname(file)}`

/** The files that the lock file knows, of every row. */
function knownFilesOf({ lock, keepsFiles }: DiskOptions, keyOf: (file: string) => string) {
  const outputs = [...lock.entries].flatMap(([name, { made }]) =>
    outputsOf(made).map((output) => ({ name, output })),
  )
  const lengths = new Set(outputs.map(({ output }) => output.bytes))
  /** Made when it is needed: most batches have no file in the way. */
  let byFile: Map<string, (typeof outputs)[number]> | undefined
  const holderOf = (file: string) => {
    byFile ??= new Map(outputs.map((each) => [keyOf(each.output.file), each]))
    return byFile.get(keyOf(file))
  }
  return {
    has: (file: string) => holderOf(file) !== undefined,
    hasBytes: (bytes: number) => lengths.has(bytes),
    /** Undefined for a file of no row. */
    find(file: string, sha256: string): { readonly of: string | undefined } | undefined {
      const holder = holderOf(file)
      if (holder?.output.sha256 !== sha256) return undefined
      return { of: keepsFiles(holder.name) ? holder.name : undefined }
    },
  }
}

/** Follows a link to read it: assets that are links (git-annex, DVC) count as their content. */
async function factOf(path: string, isCandidate: (bytes: number) => boolean): Promise<FileFact> {
  try {
    const found = statOf(path)
    // A dangling link also occupies the path, and can be replaced.
    if (found === undefined) return isThere(path) ? { is: 'file', sha256: undefined } : { is: 'missing' }
    if (found.isDirectory()) return { is: 'other', what: 'a folder' }
    if (!found.isFile()) return { is: 'other', what: 'not a regular file' }
    // Another length means another file: it need not be read.
    return { is: 'file', sha256: isCandidate(found.size) ? await sha256OfFile(path) : undefined }
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

/**
 * The names of a run's outputs after its first one: `fox.png`, `fox-2.png`, `fox-3.png`. If a row of the manifest has
 * that name, as with `count: 2`, it is `fox-1-2.png`. Every batch finds the same names.
 */
function createOutputNames(
  entries: readonly ManifestEntry[],
  { realPathOf }: Pick<ManifestFolder, 'realPathOf'>,
) {
  const indexOfEntries = () =>
    createFileIndex(entries.map((entry) => ({ entry, kind: entry.kind, realPath: realPathOf(entry.output) })))
  /** Made on demand: most runs have one output. */
  let files: ReturnType<typeof indexOfEntries> | undefined

  function isTaken(file: string, entry: ManifestEntry): boolean {
    files ??= indexOfEntries()
    const claim = { realPath: realPathOf(file), kind: entry.kind }
    return files.find(claim, (each) => each.entry !== entry) !== undefined
  }

  return {
    /** The name of output `number`, counted from 1, relative to the manifest; may end in `.{ext}`. */
    nameOf(entry: ManifestEntry, number: number): string {
      if (number === 1) return entry.output
      let base = entry.output
      while (isTaken(base, entry) || isTaken(numbered(base, number), entry)) base = numbered(base, 1)
      return numbered(base, number)
    },
    /** Whether a file that the lock file knows as this output may keep its name. */
    isNameOf(file: string, entry: ManifestEntry, number: number): boolean {
      const name = withoutExtension(file)
      const stem = withoutExtension(entry.output)
      const isNumbered = new RegExp(`^(-1)*-${number}$`).test(name.slice(stem.length))
      if (!name.startsWith(stem) || !isNumbered || isTaken(file, entry)) return false
      // A new row may exist whose output `number` has this name.
      const extension = posix.extname(file)
      const base = `${name.slice(0, -`-${number}`.length)}${extension}`
      const hasExtension =
        posix.extname(entry.output) === '.{ext}' || posix.extname(entry.output) === extension
      return hasExtension && (base === `${stem}${extension}` || !isTaken(base, entry))
    },
  }
}

const withoutExtension = (path: string): string => path.slice(0, path.length - posix.extname(path).length)
