/**
 * The lock file on disk. It belongs to git as much as to the batch, so each write merges: entries of other rows stay as
 * they are on the disk, and a row of this batch that was changed underneath stops it. What has been made is written
 * together, at most once a second and at the end.
 */
import { existsSync, lstatSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { RushesError, usageError } from '../../errors.js'
import type { Clock } from '../../host/clock.js'
import { writeAtomically } from '../../host/files.js'
import { describeError, errorCode } from '../../host/system-error.js'
import { type Lock, lockPathOf, lockText, type Made, newLock, outputsOf, parseLock } from './lock.js'

/** Returns the path of a manifest's lock file. Of a link, the target is written and claimed, and the link is kept. */
export function lockFileOf(manifest: string): string {
  const path = lockPathOf(manifest)
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ? realpathSync(path) : path
  } catch (error) {
    throw usageError(`Cannot read the lock file ${describeError(error, path)}.`)
  }
}

/**
 * Reads the lock file. Returns an empty lock if there is no file. Throws `usage` if the file is invalid, or if it
 * belongs to another existing manifest.
 */
export function readLock(path: string, manifest: string): Lock {
  const text = readText(path)
  if (text === undefined) return newLock()
  const lock = parseLock(text, path)
  const other = lock.manifest
  // Look beside the manifest: the lock file may be a link to another folder.
  if (
    other !== undefined &&
    other !== basename(manifest) &&
    existsSync(join(dirname(manifest), basename(other)))
  )
    throw usageError(
      `${path} belongs to another manifest: ${other}.`,
      'Manifests whose names differ only in the extension would share one lock file. Rename one of them.',
    )
  return lock
}

/** Returns the text of the file. Undefined if it does not exist. Throws `usage`. */
function readText(path: string): string | undefined {
  try {
    refuseSpecialFile(path, 'lock file')
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    if (error instanceof RushesError) throw error
    throw usageError(`Cannot read the lock file ${describeError(error, path)}.`)
  }
}

/** Throws `usage` for a named pipe, a socket or a device: opening a pipe would wait for its other end. */
export function refuseSpecialFile(path: string, wanted: string): void {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined || found.isFile() || found.isDirectory()) return
  throw usageError(`${path} is not a ${wanted}: it is not a regular file.`, 'Move it away, or remove it.')
}

const WRITE_EVERY_MS = 1_000

export interface LockFileOptions {
  readonly path: string
  /** File name of the manifest. */
  readonly manifest: string
  /** The lock file, as it was read. */
  readonly lock: Lock
  /** Rows of this batch, and rows whose outputs they use. */
  readonly rows: ReadonlySet<string>
  readonly clock: Clock
  /** Whether rows that this batch leaves out may be in flight in another state folder: its name then stays. */
  readonly keepsWorking: boolean
  /** The file has these entries from now on. */
  onWritten(entries: ReadonlyMap<string, Made | undefined>): void
  /** The file could not be written. It is tried again with the next change, and at the end. */
  onFailed(error: unknown): void
  /** Another program has changed the entries of these rows. */
  onChanged(names: readonly string[]): void
}

const changedMeanwhile = new Error('the lock file was changed')

export class LockFile {
  /** The lock as this batch sees it. */
  #lock: Lock
  readonly #options: LockFileOptions
  /**
   * The entries as this batch found or wrote them. Not those of the last merge: a merge takes over what somebody else
   * wrote to a row that has not ended here yet, and the row's own write would then see no change.
   */
  readonly #base: Map<string, Made>
  /** Changes that are not written. Undefined: the entry goes. */
  readonly #changes = new Map<string, Made | undefined>()
  #written: string | undefined
  #writing: Promise<void> | undefined
  #hasWritten = false
  #disarm: (() => void) | undefined
  #lastWriteMs = Number.NEGATIVE_INFINITY

  constructor(options: LockFileOptions) {
    this.#options = options
    this.#lock = { ...options.lock, manifest: options.manifest }
    this.#base = new Map(options.lock.entries)
  }

  get batch(): string {
    return this.#lock.batch
  }

  /** Whether the file was written at all. */
  get hasWritten(): boolean {
    return this.#hasWritten
  }

  get(name: string): Made | undefined {
    return this.#changes.has(name) ? this.#changes.get(name) : this.#lock.entries.get(name)
  }

  /** The files of all entries, relative to the manifest. */
  files(): readonly string[] {
    const names = new Set([...this.#lock.entries.keys(), ...this.#changes.keys()])
    return [...names].flatMap((name) => outputsOf(this.get(name)).map(({ file }) => file))
  }

  /** Before the first create: the file says its batch, and which journal knows what is in flight. Rejects. */
  async begin(journal: string): Promise<void> {
    const working = (this.#options.keepsWorking ? this.#lock.working : undefined) ?? journal
    if (this.#lock.working === working && this.#hasWritten) return
    this.#lock = { ...this.#lock, working }
    await this.write()
  }

  /** Changes an entry, and writes the file soon. */
  set(name: string, made: Made | undefined): void {
    this.#changes.set(name, made)
    const { clock, onFailed } = this.#options
    const waitMs = Math.max(0, this.#lastWriteMs + WRITE_EVERY_MS - clock.monotonic())
    this.#disarm ??= clock.alarm(waitMs, () => {
      this.#disarm = undefined
      this.write().catch(onFailed)
    })
  }

  /** Changes an entry with the next write. */
  change(name: string, made: Made | undefined): void {
    this.#changes.set(name, made)
  }

  /** Writes what is not written yet. `isDone`: no row of this batch is in flight. Rejects with the system's error. */
  async end(isDone: boolean): Promise<void> {
    if (isDone) this.#lock = { ...this.#lock, working: undefined }
    const { working } = this.#options.lock
    if (this.#changes.size === 0 && !this.#hasWritten && working === this.#lock.working) return
    if (this.#changes.size > 0 || this.#written !== lockText(this.#lock)) await this.write()
  }

  /** Writes one after the other. Calls during a write share the next one. */
  async write(): Promise<void> {
    this.#disarm?.()
    this.#disarm = undefined
    while (this.#writing !== undefined) await this.#writing.catch(() => {})
    this.#writing = this.#writeMerged()
    try {
      await this.#writing
    } finally {
      this.#writing = undefined
    }
  }

  async #writeMerged(): Promise<void> {
    const { path, clock, onWritten } = this.#options
    for (;;) {
      const text = readText(path)
      if (text !== undefined && text !== this.#written) this.#merge(text)
      const changes = new Map(this.#changes)
      const entries = new Map(this.#lock.entries)
      for (const [name, made] of changes)
        if (made === undefined) entries.delete(name)
        else entries.set(name, made)
      const next = { ...this.#lock, entries }
      const written = lockText(next)
      try {
        await writeAtomically(path, written, {
          // Checked again right before the file is replaced, because writing takes time.
          beforeReplace() {
            if (readText(path) !== text) throw changedMeanwhile
          },
        })
      } catch (error) {
        if (error === changedMeanwhile) continue
        throw error
      }
      this.#lock = { ...next, working: this.#lock.working }
      this.#written = written
      this.#hasWritten = true
      this.#lastWriteMs = clock.monotonic()
      for (const [name, made] of changes) {
        // Entries set during this write are part of the next one.
        if (this.#changes.get(name) === made) this.#changes.delete(name)
        if (made === undefined) this.#base.delete(name)
        else this.#base.set(name, made)
      }
      onWritten(changes)
      return
    }
  }

  /** Takes over what others have written. Looks at every row of the batch, before it is paid for. */
  #merge(text: string): void {
    const { path, rows, onChanged } = this.#options
    const found = parseLock(text, path)
    const changed = [...rows].filter(
      (name) => JSON.stringify(this.#base.get(name)) !== JSON.stringify(found.entries.get(name)),
    )
    this.#lock = { ...this.#lock, entries: found.entries }
    if (changed.length > 0) onChanged(changed)
  }
}
