/** Workers and the models that they render, on SQLite. A row is a lease. */
import type { OpenDatabase, Row } from '../../../host/database.js'
import type { Store, WorkerRecord } from '../contract.js'
import { countUnfinishedSql, modelUses } from '../model-use.js'
import type { WorkerLocks } from './worker-locks.js'

const SQL = {
  renewLease: `
    INSERT INTO workers (id, models, heartbeat_at)
    VALUES (?1, ?2, CAST(unixepoch('subsec') * 1000 AS INTEGER))
    ON CONFLICT (id) DO UPDATE SET models = excluded.models, heartbeat_at = max(heartbeat_at + 1, excluded.heartbeat_at)`,

  extendLease: `
    UPDATE workers SET heartbeat_at = max(heartbeat_at + 1, CAST(unixepoch('subsec') * 1000 AS INTEGER))
    WHERE id = ?1`,

  // Executed once a second, so it does not read the models.
  listWorkers: `SELECT id, heartbeat_at FROM workers`,

  listCarried: `SELECT id, models FROM workers`,

  countUnfinished: countUnfinishedSql('runs INDEXED BY runs_of_model', 'runs INDEXED BY runs_rendering'),
} as const

type LeaseStore = Pick<Store, 'renewLease' | 'extendLease' | 'listWorkers' | 'listModels'>

export function createLeaseStore({ run, all, transaction }: OpenDatabase, locks: WorkerLocks): LeaseStore {
  const workerOfRow = (row: Row): WorkerRecord => ({
    id: String(row.id),
    heartbeatAtMs: Number(row.heartbeat_at),
    hasEnded: locks.hasEnded(String(row.id)),
  })

  return {
    async listModels() {
      const workers = all(SQL.listCarried).filter(({ id }) => !locks.hasEnded(String(id)))
      return modelUses(all(SQL.countUnfinished), workers)
    },

    renewLease: async (id, models = []) =>
      transaction(() => {
        const others = all(SQL.listWorkers).map((row) => String(row.id))
        locks.hold(id, others)
        run(SQL.renewLease, id, JSON.stringify(models))
      }),
    extendLease: async (id) => run(SQL.extendLease, id).changes > 0,
    listWorkers: async () => all(SQL.listWorkers).map(workerOfRow),
  }
}
