/** Records of files and of the runs that need them. */
import { outputKey } from '../stored-run.js'
import { MAX_REMOVED, type Store } from './contract.js'
import { checkSession, type Database, type Dialect, repeatable } from './sql.js'
import { ADD_RUN_FILE } from './statements.js'

const IS_UNUSED = `NOT EXISTS (SELECT 1 FROM run_files WHERE run_files.kind = files.kind AND run_files.key = files.key)`

export const fileStatements = ({ inList, list, lock, lockFree }: Dialect) => ({
  findImage: `SELECT key FROM files WHERE kind = 'input' AND sha256 = $1`,

  // Locked, so that the run cannot end before its outputs are recorded.
  isRendering: `SELECT 1 FROM runs WHERE id = $1 AND owner = $2 AND status = 'processing'${lock()}`,

  // Skips files that are locked by a create that is about to use them.
  lockOld: `
    SELECT key FROM files WHERE kind = $1 AND used_at < $2 AND ${IS_UNUSED}
    ORDER BY used_at LIMIT ${MAX_REMOVED}${lockFree}`,

  // A separate statement, so that it sees creates that were committed before the rows were locked.
  removeOld: `DELETE FROM files WHERE kind = $1 AND key ${inList('$2')} AND ${IS_UNUSED} RETURNING key`,

  removeOutputs: `
    DELETE FROM files WHERE kind = 'output' AND ${IS_UNUSED} AND key IN (
      SELECT token || '/' || outputs.name FROM outputs JOIN runs ON runs.id = run_id
      WHERE run_id = $1 AND account_id + 0 = $2
    ) RETURNING key`,

  findUnknown: `
    SELECT value AS key FROM ${list('$2', 'listed')}
    WHERE NOT EXISTS (SELECT 1 FROM files WHERE kind = $1 AND key = listed.value)
      AND NOT EXISTS (SELECT 1 FROM run_files WHERE kind = $1 AND key = listed.value)`,

  databaseId: `SELECT database_id FROM format`,
})

export function createFileRecords(database: Database) {
  const { get, all, dialect } = database
  const SQL = fileStatements(dialect)
  return {
    async findImage(sha256) {
      const row = await get(SQL.findImage, sha256)
      return row && String(row.key)
    },
    addOutputFiles: ({ id, owner }, outputs) =>
      repeatable(database, async (tx) => {
        if ((await tx.get(SQL.isRendering, id, owner)) === undefined) return false
        for (const output of outputs) await tx.run(ADD_RUN_FILE, id, 'output', outputKey(output))
        return true
      }),

    // A repeat after a lost response removes further records. `findUnknownFiles` finds the files of the others.
    removeOldFiles: (kind, beforeMs) =>
      repeatable(database, async (tx) => {
        const keys = (await tx.all(SQL.lockOld, kind, beforeMs)).map(({ key }) => String(key))
        return keys.length === 0
          ? []
          : (await tx.all(SQL.removeOld, kind, keys)).map(({ key }) => String(key))
      }),
    // A repeat after a lost response finds no records. `findUnknownFiles` then finds the files.
    removeOutputs: (runId, accountId, by) =>
      repeatable(database, async (tx) => {
        await checkSession(tx, dialect, by)
        return (await tx.all(SQL.removeOutputs, runId, accountId)).map(({ key }) => String(key))
      }),
    findUnknownFiles: async (kind, keys) =>
      (await all(SQL.findUnknown, kind, keys)).map(({ key }) => String(key)),
    databaseId: async () => String((await get(SQL.databaseId))?.database_id),
  } satisfies Partial<Store>
}
