/** Keeps the lock file while a batch runs: every change is on the disk before its caller continues. */
import { type Lock, type LockEntry, withEntry } from './lock.js'

export interface LockKeeper {
  entry(name: string): LockEntry | undefined
  /** Resolves when the file has it. Changes during a write are written together in the next one. */
  set(name: string, entry: LockEntry | undefined): Promise<void>
  /** Writes the current state, changed or not. */
  write(): Promise<void>
}

export function createLockKeeper(first: Lock, write: (lock: Lock) => Promise<void>): LockKeeper {
  let lock = first
  let writing: Promise<void> | undefined
  let next: Promise<void> | undefined

  /** One write at a time; callers during a write share the next one. */
  function save(): Promise<void> {
    if (writing === undefined) {
      writing = write(lock).finally(() => {
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
