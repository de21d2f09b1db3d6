/** The lock file on disk: reads it, writes it atomically, and updates it while a batch runs. */
import { existsSync, readFileSync, readlinkSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, resolve } from 'node:path'
import { usageError } from '../../errors.js'
import type { Clock } from '../../host/clock.js'
import { followLinks } from '../../host/directories.js'
import { removeFile, writeAtomically } from '../../host/files.js'
import { describeError, errorCode } from '../../host/system-error.js'
import { entryWith, type Lock, type LockEntry, lockPathOf, NO_LOCK, withEntry } from './lock.js'
import { entryText, lockText, parseLock } from './lock-text.js'

/** Linux follows at most this many links. */
const MAX_LINKS = 40

/**
 * Returns the path of a manifest's lock file. Follows links: the target is written and claimed, and the link is kept.
 */
export function lockFileOf(manifest: string): string {
  let path = lockPathOf(manifest)
  for (let links = 0; links < MAX_LINKS; links++) {
    const target = targetOf(path)
    if (target === undefined) return path
    // The folder may be reached through a link: `..` is relative to the real folder.
    path = isAbsolute(target) ? target : join(followLinks(resolve(dirname(path))), target)
  }
  throw usageError(`Cannot read the lock file ${path}: its links lead in a circle.`)
}

/** Returns the target of a link. Undefined for other files. */
function targetOf(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

/**
 * Reads the lock file. Returns an empty lock if there is no file. Throws `usage` if the file is invalid, or if it
 * belongs to another existing manifest.
 */
export function readLock(path: string, manifest: string): Lock {
  const text = readText(path)
  if (text === undefined) return NO_LOCK
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
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw usageError(`Cannot read the lock file ${describeError(error, path)}.`)
  }
}

export function lockFileAt(path: string, manifest: string, clock: Clock) {
  let written: string | undefined
  let seen: string | undefined
  const changed = new Error('the lock file was changed')
  return {
    /** Reads the lock file. Undefined if it is unchanged since the last write, or was removed. Throws `usage`. */
    read(): Lock | undefined {
      seen = readText(path)
      return seen === undefined || seen === written ? undefined : parseLock(seen, path)
    },
    /**
     * Writes the file atomically: a killed batch leaves the old file or the new one. Returns false and writes nothing
     * if the file has changed since `read`. Rejects with the system error.
     */
    async write(lock: Lock): Promise<boolean> {
      const text = textFor(manifest, lock)
      // Check again right before the file is replaced, because writing takes time.
      const beforeReplace = () => {
        if (readText(path) !== seen) throw changed
      }
      try {
        await writeAtomically(path, text, { clock, beforeReplace })
      } catch (error) {
        if (error === changed) return false
        throw error
      }
      written = text
      return true
    },
  }
}

/** Removes temporary files of a batch that was killed while writing. Only the holder of the claim may call it. */
export async function removeLeftovers(path: string): Promise<void> {
  const names = await readdir(dirname(path)).catch(() => [])
  for (const name of names)
    if (name.startsWith(`.${basename(path)}.`) && /\.[0-9a-f]{12}\.part$/.test(name))
      await removeFile(join(dirname(path), name)).catch(() => {})
}

/** Whether the lock file on disk already has this content. */
export function isWritten(path: string, manifest: string, lock: Lock): boolean {
  try {
    return readFileSync(path, 'utf8') === textFor(manifest, lock)
  } catch {
    return false
  }
}

const textFor = (manifest: string, lock: Lock): string => lockText({ ...lock, manifest: basename(manifest) })

export interface LockKeeper {
  entry(name: string): LockEntry | undefined
  /** Sets or removes an entry. Resolves after it is written. Changes during a write are combined in the next one. */
  set(name: string, entry: LockEntry | undefined): Promise<void>
  /** Writes the current state, even if it is unchanged. */
  write(): Promise<void>
}

export interface LockKeeperOptions {
  /** The lock file, as it was read. */
  readonly base: Lock
  /** The lock to write. */
  readonly lock: Lock
  /**
   * Reads the lock file. Undefined if it is unchanged since the last write, or was removed. Throws if it cannot be
   * read.
   */
  read(): Lock | undefined
  /** Writes the lock file. False if it was changed since it was read. */
  write(lock: Lock): Promise<boolean>
  /**
   * Called with rows whose entries another program has changed on disk, before the `set` or `write` that found them
   * resolves.
   */
  onChanged(names: readonly string[]): void
}

/**
 * Writes each change to disk before its caller continues. Git may change the file too, so each write keeps changes that
 * others made since the last one.
 */
export function createLockKeeper(options: LockKeeperOptions): LockKeeper {
  let { base, lock } = options
  /** The lock as read, with later changes of others. All differences from it were made by this batch. */
  let origin = base
  let writing: Promise<void> | undefined
  let next: Promise<void> | undefined

  async function write(): Promise<void> {
    for (;;) if (await writeMerged()) return
  }

  async function writeMerged(): Promise<boolean> {
    const found = options.read()
    if (found !== undefined) {
      const changed = changedNames(base, found)
      lock = merged({ base: origin, lock, found, changed })
      for (const name of changed) origin = withEntry(origin, name, found.entries.get(name))
      if (changed.length > 0) options.onChanged(changed)
    }
    // Entries set during this write are part of the next one.
    const written = lock
    base = found ?? base
    if (!(await options.write(written))) return false
    base = written
    return true
  }

  /** Only one write runs at a time. Calls during a write share the next one. */
  function save(): Promise<void> {
    if (writing === undefined) {
      writing = write().finally(() => {
        writing = undefined
      })
      return writing
    }
    next ??= writing
      .catch(() => {})
      .then(() => {
        next = undefined
        return save()
      })
    return next
  }

  return {
    entry: (name) => lock.entries.get(name),
    set(name, entry) {
      lock = withEntry(lock, name, entry)
      return save()
    },
    write: save,
  }
}

const textOf = (entry: LockEntry | undefined): string => (entry === undefined ? '' : entryText(entry))

function changedNames({ entries: before }: Lock, { entries: now }: Lock): readonly string[] {
  const names = new Set([...before.keys(), ...now.keys()])
  return [...names].filter((name) => textOf(before.get(name)) !== textOf(now.get(name)))
}

interface Versions {
  readonly base: Lock
  readonly lock: Lock
  /** The lock read from disk. */
  readonly found: Lock
  readonly changed: readonly string[]
}

/**
 * Merges the lock of this batch with the one on disk. If both changed an entry, the changes of this batch win: they may
 * contain a paid run.
 */
function merged({ base, lock, found, changed }: Versions): Lock {
  const added = [...found.rows].filter(([name]) => !lock.rows.has(name))
  let result: Lock = { ...lock, rows: new Map([...lock.rows, ...added]), further: found.further }
  for (const name of changed) {
    const [before, own, theirs] = [base, lock, found].map(({ entries }) => entries.get(name))
    result = withEntry(result, name, mergedEntry(before, own, theirs))
  }
  return result
}

function mergedEntry(
  before: LockEntry | undefined,
  own: LockEntry | undefined,
  theirs: LockEntry | undefined,
): LockEntry | undefined {
  const pick = <Part extends keyof LockEntry>(part: Part): LockEntry[Part] | undefined => {
    const isOurs = JSON.stringify(own?.[part]) !== JSON.stringify(before?.[part])
    return isOurs ? own?.[part] : theirs?.[part]
  }
  return entryWith({
    made: pick('made'),
    pending: pick('pending'),
    further: pick('further') ?? {},
  })
}
