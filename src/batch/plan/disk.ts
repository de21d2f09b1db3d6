/** Finds the files that exist at the paths of the outputs. Read-only. */
import { type Stats, statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { basename, dirname, extname, posix, resolve } from 'node:path'
import { exists, sameFileKey } from '../../host/file-system.js'
import { sha256OfFile } from '../../host/files.js'
import { describeReason, errorCode } from '../../host/system-error.js'
import { numbered } from '../../protocol/output-names.js'
import { addTo } from '../../protocol/parse.js'
import { cutToBytes } from '../../protocol/text.js'
import { type Lock, type LockedOutput, type Made, outputsOf } from '../lock/lock.js'
import type { ManifestEntry } from '../manifest/entry.js'
import {
  type FileClaim,
  FileIndex,
  ManifestFolder,
  mayBecome,
  OPEN,
  withoutExtension,
} from '../manifest/outputs.js'

/** State of the path of an output. */
export type FileFact =
  | { readonly is: 'missing' }
  | {
      readonly is: 'file'
      /** Undefined for a link that leads nowhere. */
      readonly sha256: string | undefined
      /** Whether the lock file lists it as an output that its row moves or no longer uses. It may then be replaced. */
      readonly isFree?: boolean
    }
  /** A folder, a device, or the file of a row that `--only` leaves out. Never replaced. */
  | { readonly is: 'other'; readonly what: string }

export interface PlannedOutput {
  /** Path relative to the manifest, separated by `/`. Ends in `.{ext}` until the extension is known. */
  readonly file: string
  /** The same for a new run, whose bytes decide the extension. */
  readonly name: string
  readonly fact: FileFact
  /** Absolute path of the locked output, if it is still at its old path after its output was renamed. */
  readonly from?: string | undefined
}

interface DiskOptions {
  /** Absolute path of the manifest's folder. */
  readonly folder: string
  readonly entries: readonly ManifestEntry[]
  readonly lock: Lock
  /** Whether the files of this entry stay at their paths, because `--only` does not select its row. */
  keepsFiles(name: string): boolean
  readonly allowOutside: boolean
}

interface KnownOutput {
  /** Name of its entry in the lock file. */
  readonly name: string
  readonly output: LockedOutput
}

export class Disk {
  readonly #options: DiskOptions
  readonly #folder: ManifestFolder
  /** The extensions in each folder, by the key of their stem. Each folder is listed only once. */
  readonly #listings = new Map<string, Promise<ReadonlyMap<string, readonly string[]>>>()
  /** The outputs in the lock file by the key of their path. Two paths may have one key. */
  readonly #known = new Map<string, KnownOutput[]>()
  /** The first outputs of the rows. Created on demand: most runs have one output. */
  #claims: FileIndex<FileClaim & { readonly entry: ManifestEntry }> | undefined

  constructor(options: DiskOptions) {
    this.#options = options
    this.#folder = new ManifestFolder(options.folder)
    for (const [name, made] of options.lock.entries)
      for (const output of outputsOf(made)) addTo(this.#known, this.keyOf(output.file), { name, output })
  }

  /** Lists the folders again. */
  refresh(): void {
    this.#listings.clear()
  }

  /** Key of a path relative to the manifest. Equal for paths of one file, also if a folder is reached through a link. */
  keyOf(file: string): string {
    return sameFileKey(this.#folder.realPathOf(file))
  }

  /** Whether two paths are one file by their exact names. Letter case and Unicode form are parts of a name. */
  isOnePath(file: string, other: string): boolean {
    return this.#folder.realPathOf(file) === this.#folder.realPathOf(other)
  }

  /** A lock file must not make this program read, move or remove files outside the manifest's folder. */
  mayUse(file: string): boolean {
    return this.#options.allowOutside || this.#folder.isInside(file)
  }

  /** Checks the paths of all outputs in the lock file, and of at least `count` outputs. */
  async lookAt(entry: ManifestEntry, locked: Made | undefined, count = 0): Promise<readonly PlannedOutput[]> {
    const owned = outputsOf(locked)
    const found: PlannedOutput[] = []
    for (let number = 1; number <= Math.max(1, count, owned.length); number++)
      found.push(await this.#lookAtOne(entry, this.#nameOf(entry, number), locked, owned[number - 1]))
    return found
  }

  async #lookAtOne(
    { kind }: ManifestEntry,
    name: string,
    locked: Made | undefined,
    own: LockedOutput | undefined,
  ): Promise<PlannedOutput> {
    const isOpen = name.endsWith(OPEN)
    // A row that becomes a video gets another file than its earlier image.
    if (own !== undefined && !(isOpen && (locked?.kind ?? kind) !== kind)) {
      const file = isOpen ? withExtension(name, posix.extname(own.file)) : name
      const fact = await this.#factAt(file, own)
      const isThere = this.#isOwn(file, fact, own)
      const from = isThere || fact.is === 'other' ? undefined : await this.#elsewhere(own, file)
      if (isThere || from !== undefined || file === own.file) return { file, name, fact, from }
    }
    const file = await this.#fileAt(name, kind)
    return { file, name, fact: await this.#factAt(file, own) }
  }

  /**
   * Names the outputs of a run after the first one: `fox.png`, `fox-2.png`, `fox-3.png`. If another row has that name, as
   * with `count: 2`, uses `fox-1-2.png`. The names are the same in every batch.
   */
  #nameOf(entry: ManifestEntry, number: number): string {
    if (number === 1) return entry.output
    let base = entry.output
    while (this.#isTaken(base, entry) || this.#isTaken(numbered(base, number), entry))
      base = numbered(base, 1)
    return numbered(base, number)
  }

  #isTaken(file: string, entry: ManifestEntry): boolean {
    const claimOf = (each: ManifestEntry, path: string) => ({
      entry: each,
      kind: each.kind,
      realPath: this.#folder.realPathOf(path),
    })
    this.#claims ??= new FileIndex(this.#options.entries.map((each) => claimOf(each, each.output)))
    return this.#claims.find(claimOf(entry, file), (each) => each.entry !== entry) !== undefined
  }

  /** Returns the path with the extension of a file that exists there, if the extension of the name is open. */
  async #fileAt(name: string, kind: ManifestEntry['kind']): Promise<string> {
    if (!name.endsWith(OPEN)) return name
    const path = resolve(this.#options.folder, name)
    const stem = path.slice(0, -OPEN.length)
    const extensions = (await this.#list(dirname(path))).get(sameFileKey(basename(stem))) ?? []
    const found = extensions.find((each) => mayBecome(kind, each.slice(1)) && exists(`${stem}${each}`))
    return found === undefined ? name : withExtension(name, found)
  }

  #list(folder: string): Promise<ReadonlyMap<string, readonly string[]>> {
    const listing = this.#listings.get(folder) ?? readdir(folder).then(byStem, () => new Map())
    this.#listings.set(folder, listing)
    return listing
  }

  /** Returns the absolute path of a locked output, if its file still exists there, or is being moved to `target`. */
  async #elsewhere(own: LockedOutput, target: string): Promise<string | undefined> {
    for (const file of [own.file, stagedPath(target, own.sha256)]) {
      const path = resolve(this.#options.folder, file)
      const fact = this.mayUse(file) ? await factOf(path) : undefined
      if (isInPlace(fact, own.sha256)) return path
    }
    return undefined
  }

  async #factAt(file: string, own: LockedOutput | undefined): Promise<FileFact> {
    if (file.endsWith(OPEN)) return { is: 'missing' }
    const fact = await factOf(resolve(this.#options.folder, file))
    if (fact.is !== 'file' || this.#isOwn(file, fact, own) || !this.mayUse(file)) return fact
    const holders = this.#holdersOf(file).filter(({ output }) => output.sha256 === fact.sha256)
    const keeper = holders.find(({ name }) => this.#options.keepsFiles(name))
    if (keeper !== undefined)
      return { is: 'other', what: `the file of "${keeper.name}", which --only leaves out` }
    return { ...fact, isFree: holders.length > 0 }
  }

  /** A file with the same bytes may belong to another entry, which will move it away. */
  #isOwn(file: string, fact: FileFact, own: LockedOutput | undefined): boolean {
    if (own === undefined || !isInPlace(fact, own.sha256)) return false
    const isOfOther = this.#holdersOf(file).some(({ output }) => output.sha256 === own.sha256)
    return this.isOnePath(own.file, file) || !isOfOther
  }

  #holdersOf(file: string): readonly KnownOutput[] {
    return this.#known.get(this.keyOf(file)) ?? []
  }
}

export const isInPlace = (fact: FileFact | undefined, sha256: string | undefined): boolean =>
  fact?.is === 'file' && sha256 !== undefined && fact.sha256 === sha256

/** Whether an output may be written at the path. `overwrite`: `--overwrite`. */
export const mayWrite = (fact: FileFact, overwrite: boolean): boolean =>
  fact.is === 'missing' || (fact.is === 'file' && (fact.isFree === true || overwrite))

function byStem(names: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>()
  for (const name of [...names].sort()) addTo(found, sameFileKey(withoutExtension(name)), extname(name))
  return found
}

const withExtension = (openName: string, extension: string): string =>
  `${openName.slice(0, -OPEN.length)}${extension}`

/** Leaves room for the rest of the name. */
const MAX_STAGED_NAME_BYTES = 200

/** Returns the hidden path at which a file waits until all files to be moved have left their places. */
export function stagedPath(to: string, sha256: string): string {
  const { dir, base } = posix.parse(to)
  return posix.join(dir, `.${cutToBytes(base, MAX_STAGED_NAME_BYTES)}.${sha256.slice(0, 12)}.move`)
}

/** Reads through links: an asset that is a link (git-annex, DVC) counts as its content. */
async function factOf(path: string): Promise<FileFact> {
  try {
    const found = statOf(path)
    // A dangling link also occupies the path. It can be replaced.
    if (found === undefined) return exists(path) ? { is: 'file', sha256: undefined } : { is: 'missing' }
    if (found.isDirectory()) return { is: 'other', what: 'a folder' }
    if (!found.isFile()) return { is: 'other', what: 'not a regular file' }
    return { is: 'file', sha256: await sha256OfFile(path) }
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

/** Returns the hash of a file. Undefined if it is not a regular file, or was changed while it was read. */
export async function unchangedHash(path: string): Promise<string | undefined> {
  try {
    const before = statSync(path, { bigint: true })
    if (!before.isFile()) return undefined
    const sha256 = await sha256OfFile(path)
    const after = statSync(path, { bigint: true })
    const isSame = before.mtimeNs === after.mtimeNs && before.size === after.size && before.ino === after.ino
    return isSame ? sha256 : undefined
  } catch {
    return undefined
  }
}
