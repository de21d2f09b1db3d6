/**
 * Leases of workers on SQLite. Detects workers that have ended: each worker holds a file lock while its process runs.
 * For a worker without a lock, only the expired lease shows that it has ended.
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
import type { WorkerRecord } from '../contract.js'
import type { LeaseStore } from '../queue.js'
import type { Database, Row } from '../sql.js'

const NOW_MS = "CAST(unixepoch('subsec') * 1000 AS INTEGER)"

const SQL = {
  renewLease: `
    INSERT INTO workers (id, heartbeat_at) VALUES ($1, ${NOW_MS})
    ON CONFLICT (id) DO UPDATE SET heartbeat_at = max(heartbeat_at + 1, excluded.heartbeat_at)`,

  extendLease: `UPDATE workers SET heartbeat_at = max(heartbeat_at + 1, ${NOW_MS}) WHERE id = $1`,

  // Executed once a second.
  listWorkers: `SELECT id, heartbeat_at FROM workers`,
} as const

/** `path`: path of the database. `end` releases the locks of this process: its workers that have a row then count as ended. */
export function createLeases(
  { all, run, transaction }: Database,
  path: string,
): LeaseStore & { end(): void } {
  const folder = locksFolder(dirname(path))
  const held = new Map<string, HeldLock | undefined>()
  const pathOf = (id: string) => join(folder, id)

  /** `others`: ids of all other rows, whose locks are kept. */
  function hold(id: string, others: readonly string[]): void {
    // The lock file is missing if another process reaped this worker while it was alive.
    if (held.get(id) !== undefined && existsSync(pathOf(id))) return
    held.get(id)?.release()
    held.set(id, takeLock(pathOf(id)))
    removeOldLocks(folder, others)
  }

  const workerOfRow = (row: Row): WorkerRecord => ({
    id: String(row.id),
    heartbeatAtMs: Number(row.heartbeat_at),
    // Needs no file for workers of this process: to open one takes longer than to read the queue.
    hasEnded: held.get(String(row.id)) === undefined && isLocked(pathOf(String(row.id))) === false,
  })
  return {
    renewLease: (id) =>
      transaction(async (tx) => {
        const others = (await tx.all(SQL.listWorkers)).map((row) => String(row.id))
        hold(id, others)
        await tx.run(SQL.renewLease, id)
      }),
    extendLease: async (id) => (await run(SQL.extendLease, id)) > 0,
    listWorkers: async () => (await all(SQL.listWorkers)).map(workerOfRow),
    async forget(id) {
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
