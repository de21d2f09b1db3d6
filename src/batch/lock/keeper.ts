/**
 * Keeps the lock file while a batch runs: every change is on the disk before its caller continues. The file belongs to git
 * as well: each write keeps what others have changed in it since the last one.
 */
import { type Lock, type LockEntry, withEntry } from './lock.js'
import { entryText } from './lock-text.js'

export interface LockKeeper {
  entry(name: string): LockEntry | undefined
  /** Resolves when the file has it. Changes during a write are written together in the next one. */
  set(name: string, entry: LockEntry | undefined): Promise<void>
  /** Writes the current state, changed or not. */
  write(): Promise<void>
}

export interface LockKeeperOptions {
  /** The lock file as it was read. */
  readonly base: Lock
  /** What it is to become. */
  readonly lock: Lock
  /** Undefined where the file has not changed since the last write, or is gone. Throws where it cannot be read. */
  read(): Lock | undefined
  /** False where the file was changed since it was read. */
  write(lock: Lock): Promise<boolean>
  /** Names of rows whose entries somebody else has changed, before the write that found it resolves. */
  onChanged(names: readonly string[]): void
}

export function createLockKeeper(options: LockKeeperOptions): LockKeeper {
  let { base, lock } = options
  /** What was read, with what others have changed since: whatever differs from it is of this batch. */
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
    // What is set meanwhile is written next.
    const written = lock
    base = found ?? base
    if (!(await options.write(written))) return false
    base = written
    return true
  }

  /** One write at a time; callers during a write share the next one. */
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
  /** On the disk. */
  readonly found: Lock
  readonly changed: readonly string[]
}

/** Of an entry that both have changed, each part that this batch has changed stays: it may be a run that was paid for. */
function merged({ base, lock, found, changed }: Versions): Lock {
  let result: Lock = { ...lock, further: found.further }
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
  const made = pick('made')
  const pending = pick('pending')
  return made === undefined && pending === undefined
    ? undefined
    : { made, pending, further: pick('further') ?? {} }
}
