/** Keeps the lock file while a batch is at work: every change is on the disk before whoever made it goes on. */
import { type Lock, type LockEntry, withEntry } from './lock.js'

export interface LockKeeper {
  entry(name: string): LockEntry | undefined
  /** Resolves when the file holds it. Changes that come while it is written go into the next writing together. */
  set(name: string, entry: LockEntry | undefined): Promise<void>
  /** Writes what there is, changed or not. */
  write(): Promise<void>
}

export function createLockKeeper(first: Lock, write: (lock: Lock) => Promise<void>): LockKeeper {
  let lock = first
  let writing: Promise<void> | undefined
  let next: Promise<void> | undefined

  /** One writing at a time; whoever comes meanwhile shares the one after it. */
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
