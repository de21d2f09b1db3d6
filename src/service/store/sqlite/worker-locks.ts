/** Which workers have proven to have ended: each holds a lock for as long as its process runs. The others have their lease. */
import { existsSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import {
  type HeldLock,
  isLocked,
  locksFolder,
  removeLock,
  removeOldLocks,
  takeLock,
} from '../../../host/process-lock.js'

/**
 * What a row says of its process, for people. Earlier versions compared it with their own to find processes that had ended; with
 * this host, a worker is on another machine to them.
 */
export const processColumns = (): readonly [host: string, pid: number, bornAtMs: number] => [
  `${hostname()} (locked)`,
  process.pid,
  Math.round(performance.timeOrigin),
]

export interface WorkerLocks {
  /** Call it in the transaction that writes the worker's row. `others` have rows too. */
  hold(id: string, others: readonly string[]): void
  /** False where nothing proves it, as for a worker of an earlier version. */
  hasEnded(id: string): boolean
  /** Call it in the transaction that removes the worker's row. */
  remove(id: string): void
  /** Ends what this process holds; the workers whose rows are left have ended. */
  end(): void
}

/** `path` is that of the database. */
export function createWorkerLocks(path: string): WorkerLocks {
  const folder = locksFolder(dirname(path))
  const held = new Map<string, HeldLock | undefined>()
  const pathOf = (id: string) => join(folder, id)
  return {
    hold(id, others) {
      // A process that reaped this worker although it lives has removed its file.
      if (held.get(id) !== undefined && existsSync(pathOf(id))) return
      held.get(id)?.release()
      held.set(id, takeLock(pathOf(id)))
      removeOldLocks(folder, others)
    },
    hasEnded: (id) => isLocked(pathOf(id)) === false,
    remove(id) {
      const own = held.get(id)
      held.delete(id)
      if (own === undefined) removeLock(pathOf(id))
      else own.remove()
    },
    end() {
      for (const lock of held.values()) lock?.release()
      held.clear()
    },
  }
}
