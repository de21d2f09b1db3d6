/**
 * Detects workers that have ended: each worker holds a file lock while its process runs. For a worker without a lock,
 * only the expired lease shows that it has ended.
 */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import {
  type HeldLock,
  isLocked,
  locksFolder,
  removeLock,
  removeOldLocks,
  takeLock,
} from '../../../host/process-lock.js'

export interface WorkerLocks {
  /**
   * Takes the worker's lock. Call it in the transaction that writes the worker's row. `others`: ids of all other rows,
   * whose locks are kept.
   */
  hold(id: string, others: readonly string[]): void
  /** Returns false if no lock proves it. */
  hasEnded(id: string): boolean
  /** Removes the worker's lock. Call it in the transaction that removes the worker's row. */
  remove(id: string): void
  /** Releases all locks of this process. Workers of this process that still have a row then count as ended. */
  end(): void
}

/** `path`: path of the database. */
export function createWorkerLocks(path: string): WorkerLocks {
  const folder = locksFolder(dirname(path))
  const held = new Map<string, HeldLock | undefined>()
  const pathOf = (id: string) => join(folder, id)
  return {
    hold(id, others) {
      // The lock file is missing if another process reaped this worker while it was alive.
      if (held.get(id) !== undefined && existsSync(pathOf(id))) return
      held.get(id)?.release()
      held.set(id, takeLock(pathOf(id)))
      removeOldLocks(folder, others)
    },
    hasEnded: (id) => isLocked(pathOf(id)) === false,
    remove(id) {
      const ownLock = held.get(id)
      held.delete(id)
      if (ownLock === undefined) removeLock(pathOf(id))
      else ownLock.remove()
    },
    end() {
      for (const lock of held.values()) lock?.release()
      held.clear()
    },
  }
}
