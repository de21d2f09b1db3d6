/** Finds the files that exist at the paths of the outputs. Read-only. */
import { lstatSync, type Stats, statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { basename, dirname, extname, posix, resolve } from 'node:path'
import { type FileSystem, sameFileKey, systemFiles } from '../../host/file-system.js'
import { sha256OfFile } from '../../host/files.js'
import { describeReason, errorCode } from '../../host/system-error.js'
import { addTo } from '../../protocol/lists.js'
import { numbered } from '../../protocol/output-names.js'
import { cutToBytes } from '../../protocol/text.js'
import { type Lock, type LockedOutput, type Made, outputsOf } from '../lock/lock.js'
import {
  createFileIndex,
  type FileClaim,
  type FileIndex,
  mayBecome,
  withoutExtension,
} from '../manifest/collisions.js'
import type { ManifestEntry } from '../manifest/manifest-entry.js'
import { createManifestFolder, type ManifestFolder } from '../manifest/output-paths.js'
import { type FileFact, isInPlace } from './decide.js'
import type { Flight } from './flights.js'

export interface PlannedOutput {
  /** Path relative to the manifest, separated by `/`. Ends in `.{ext}` until the extension is known. */
  readonly file: string
  /** Path used for the download. Ends in `.{ext}` unless an earlier file had an extension. */
  readonly name: string
  readonly fact: FileFact
}

export interface Disk {
  /** Checks the paths of all outputs in the lock file, and of at least `count` outputs. */
  lookAt(entry: ManifestEntry, locked: Made | undefined, count?: number): Promise<readonly PlannedOutput[]>
  /** Whether the file of an entry still exists. Compares only its size. */
  has(made: Made): boolean
  /**
   * Key of a path relative to the manifest. Equal for paths of the same file, also if a folder is reached through a
   * link.
   */
  keyOf(file: string): string
  /** Whether two paths are one file by their exact names. Letter case and Unicode form are parts of a name. */
  isOnePath(file: string, other: string): boolean
  /** Returns a disk without cached results. */
  again(): Disk
}

/** End of a name whose extension the first bytes decide. */
export const OPEN = '.{ext}'

interface DiskOptions {
  /** Absolute path of the manifest's folder. */
  readonly folder: string
  readonly entries: readonly ManifestEntry[]
  readonly lock: Lock
  /** What the batch has in flight. */
  readonly flights: readonly Flight[]
  /** Whether the files of this entry stay at their paths, because `--only` does not select its row. */
  keepsFiles(name: string): boolean
  readonly allowOutside: boolean
  readonly fileSystem?: FileSystem | undefined
}

/** Lists each folder only once. */
export function diskOf(
  options: DiskOptions,
  grounds = createManifestFolder(options.folder),
  names = createOutputNames(options.entries, grounds),
): Disk {
  const { folder, fileSystem = systemFiles } = options
  /** A lock file must not make this program read outside the manifest's folder. */
  const mayRead = (file: string) => options.allowOutside || grounds.isInside(file)
  const keyOf = (file: string) => sameFileKey(grounds.realPathOf(file))
  const isOnePath = (file: string, other: string) =>
    file === other || grounds.realPathOf(file) === grounds.realPathOf(other)
  const known = knownFilesOf(options, keyOf)
  const listings = new Map<string, Promise<Listing>>()
  const list = (path: string): Promise<Listing> => {
    const known = listings.get(path) ?? readdir(path).then(listingOf, () => listingOf([]))
    listings.set(path, known)
    return known
  }

  /** Returns the path that an output with an open extension has, or may get. */
  async function fileAt(
    name: string,
    { kind }: ManifestEntry,
    own: LockedOutput | undefined,
  ): Promise<string> {
    if (!name.endsWith(OPEN)) return name
    const stem = name.slice(0, -OPEN.length)
    if (own !== undefined && withExtensionOf(name, own) === own.file) return own.file
    const { names, byStem } = await list(resolve(folder, dirname(name)))
    const found = byStem.get(sameFileKey(basename(stem)))?.find((each) => {
      if (!mayBecome(kind, extname(each).slice(1))) return false
      const wanted = `${basename(stem)}${extname(each)}`
      return (
        each === wanted ||
        (!names.has(wanted) && fileSystem.opensOtherSpelling(resolve(folder, dirname(name), wanted)))
      )
    })
    if (found === undefined) return name
    // A foreign file is named as the folder lists it. An own file is renamed to the spelling of the manifest.
    return own === undefined ? posix.join(posix.dirname(name), found) : `${stem}${extname(found)}`
  }

  /** Returns the absolute path of a locked output, if its file still exists there, or is being moved to `target`. */
  async function elsewhere(own: LockedOutput, target: string): Promise<string | undefined> {
    for (const file of [own.file, stagedPath(target, own.sha256)]) {
      const path = resolve(folder, file)
      const fact = mayRead(file) ? await factOf(path, (bytes) => bytes === own.bytes) : undefined
      if (fact?.is === 'file' && fact.sha256 === own.sha256) return path
    }
    return undefined
  }

  interface OutputQuery {
    readonly entry: ManifestEntry
    readonly name: string
    /** Output in the lock file. */
    readonly own: LockedOutput | undefined
  }

  async function factAt(file: string, { own }: OutputQuery): Promise<FileFact> {
    if (file.endsWith(OPEN)) return { is: 'missing' }
    const isCandidate = (bytes: number) => bytes === own?.bytes || known.hasBytes(bytes)
    const fact = await factOf(resolve(folder, file), isCandidate)
    if (fact.is !== 'file' || fact.sha256 === undefined || isOwn(file, fact, own)) return fact
    return mayRead(file) ? { ...fact, known: known.find(file, fact.sha256) } : fact
  }

  /** A file with the same bytes may belong to another entry, which will move it away. */
  const isOwn = (file: string, fact: FileFact, own: LockedOutput | undefined): boolean =>
    own !== undefined && isInPlace(fact, own.sha256) && (isOnePath(own.file, file) || !known.has(file))

  async function lookAtOne(query: OutputQuery): Promise<PlannedOutput> {
    const { entry, name, own } = query
    const file = await fileAt(name, entry, own)
    const fact = await factAt(file, query)
    if (own === undefined) return { file, name, fact }
    const isThere = fact.is === 'other' || isOwn(file, fact, own) || isOnePath(own.file, file)
    // Use the extension of the file that is moved.
    const target = name.endsWith(OPEN) ? withExtensionOf(name, own) : file
    const from = isThere ? undefined : await elsewhere(own, target)
    if (from === undefined) return { file, name: file, fact }
    const found = target === file ? fact : await factAt(target, query)
    return { file: target, name: target, fact: found.is === 'other' ? found : { ...found, elsewhere: from } }
  }

  return {
    async lookAt(entry, locked, count = 0) {
      const owned = outputsOf(locked)
      const length = Math.max(1, count, owned.length)
      const found: PlannedOutput[] = []
      for (let number = 1; number <= length; number++) {
        const own = owned[number - 1]
        const isKept = number > 1 && own !== undefined && names.isNameOf(own.file, entry, number)
        const name = isKept ? own.file : names.nameOf(entry, number)
        found.push(await lookAtOne({ entry, name, own }))
      }
      return found
    },
    has: (made) =>
      outputsOf(made).some(({ file, bytes }) => {
        const stats = statOf(resolve(folder, file))
        return stats?.isFile() === true && stats.size === bytes
      }),
    keyOf,
    isOnePath,
    again: () => diskOf(options, grounds, names),
  }
}

interface Listing {
  readonly names: ReadonlySet<string>
  /** The sorted names by the key of their stem. */
  readonly byStem: ReadonlyMap<string, readonly string[]>
}

function listingOf(names: readonly string[]): Listing {
  const byStem = new Map<string, string[]>()
  for (const name of [...names].sort()) addTo(byStem, sameFileKey(withoutExtension(name)), name)
  return { names: new Set(names), byStem }
}

/** Returns the name with the extension of an existing output. */
const withExtensionOf = (name: string, { file }: LockedOutput): string =>
  `${name.slice(0, -OPEN.length)}${posix.extname(file)}`

const STAGED = /^\..*\.[0-9a-f]{16}\.move$/

export const isStagedName = (name: string): boolean => STAGED.test(name)

/** Returns the hidden path at which a file waits until all files to be moved have left their places. */
export function stagedPath(to: string, sha256: string): string {
  const { dir, base } = posix.parse(to)
  return posix.join(dir, `.${cutToBytes(base, MAX_STAGED_NAME_BYTES)}.${sha256.slice(0, 16)}.move`)
}

/** Leaves room for the rest of the name. */
const MAX_STAGED_NAME_BYTES = 200

/** Indexes the files of every row in the lock file. */
function knownFilesOf({ lock, flights, keepsFiles }: DiskOptions, keyOf: (file: string) => string) {
  const outputs = [...lock.entries].flatMap(([name, made]) =>
    outputsOf(made).map((output) => ({ name, output })),
  )
  // A killed batch may have given files their names before the lock file had them.
  const placed = flights.flatMap(({ files }) => files)
  const lengths = new Set([...outputs.map(({ output }) => output), ...placed].map(({ bytes }) => bytes))
  /** Created on demand: most batches find no unknown file at their paths. Two names may have one key. */
  let byFile: Map<string, (typeof outputs)[number][]> | undefined
  const holdersOf = (file: string) => {
    if (byFile === undefined) {
      byFile = new Map()
      for (const each of outputs) addTo(byFile, keyOf(each.output.file), each)
    }
    return byFile.get(keyOf(file)) ?? []
  }
  return {
    has: (file: string) => holdersOf(file).length > 0,
    hasBytes: (bytes: number) => lengths.has(bytes),
    /** Undefined if the file belongs to no row. */
    find(file: string, sha256: string): { readonly of: string | undefined } | undefined {
      const holders = holdersOf(file).filter(({ output }) => output.sha256 === sha256)
      if (holders.length === 0) return undefined
      return { of: holders.find(({ name }) => keepsFiles(name))?.name }
    },
  }
}

/** Reads through links: an asset that is a link (git-annex, DVC) counts as its content. */
async function factOf(path: string, isCandidate: (bytes: number) => boolean): Promise<FileFact> {
  try {
    const found = statOf(path)
    // A dangling link also occupies the path. It can be replaced.
    if (found === undefined) return statOfLink(path) ? { is: 'file', sha256: undefined } : { is: 'missing' }
    if (found.isDirectory()) return { is: 'other', what: 'a folder' }
    if (!found.isFile()) return { is: 'other', what: 'not a regular file' }
    // A different size means a different file, so its content is not read.
    return { is: 'file', sha256: isCandidate(found.size) ? await sha256OfFile(path) : undefined }
  } catch (error) {
    return { is: 'other', what: describeReason(error) }
  }
}

/** Synchronous, because with thousands of missing files a thread for each call is slower. */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes(errorCode(error) ?? '')) return undefined
    throw error
  }
}

/** Of a link itself. Undefined also for a path that cannot be reached. */
export function statOfLink(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}

/**
 * Names the outputs of a run after the first one: `fox.png`, `fox-2.png`, `fox-3.png`. If another row has that name, as
 * with `count: 2`, uses `fox-1-2.png`. The names are the same in every batch.
 */
function createOutputNames(entries: readonly ManifestEntry[], { realPathOf }: ManifestFolder) {
  /** Created on demand: most runs have one output. */
  let files: FileIndex<FileClaim & { readonly entry: ManifestEntry }> | undefined

  function isTaken(file: string, entry: ManifestEntry): boolean {
    files ??= createFileIndex(
      entries.map((each) => ({ entry: each, kind: each.kind, realPath: realPathOf(each.output) })),
    )
    const claim = { realPath: realPathOf(file), kind: entry.kind }
    return files.find(claim, (each) => each.entry !== entry) !== undefined
  }

  return {
    /** Returns the path of output `number`, from 1, relative to the manifest. May end in `.{ext}`. */
    nameOf(entry: ManifestEntry, number: number): string {
      if (number === 1) return entry.output
      let base = entry.output
      while (isTaken(base, entry) || isTaken(numbered(base, number), entry)) base = numbered(base, 1)
      return numbered(base, number)
    },
    /** Whether the lock file's path of this output is still valid. */
    isNameOf(file: string, entry: ManifestEntry, number: number): boolean {
      const name = withoutExtension(file)
      const stem = withoutExtension(entry.output)
      const isNumbered = new RegExp(`^(-1)*-${number}$`).test(name.slice(stem.length))
      if (!name.startsWith(stem) || !isNumbered || isTaken(file, entry)) return false
      // False if a new row has an output with this name.
      const extension = posix.extname(file)
      const base = `${name.slice(0, -`-${number}`.length)}${extension}`
      const hasExtension =
        posix.extname(entry.output) === '.{ext}' || posix.extname(entry.output) === extension
      return hasExtension && (base === `${stem}${extension}` || !isTaken(base, entry))
    },
  }
}
