/** Records of files and of the runs that need them. */
import { outputKey } from '../stored-run.js'
import {
  type FileName,
  type FileRecords,
  MAX_MARKED,
  RENEWED_AFTER_MS,
  type Store,
  spareKeyOf,
} from './contract.js'
import type { Database, Dialect } from './sql.js'

const IS_UNUSED = `NOT EXISTS (SELECT 1 FROM run_files WHERE run_files.kind = files.kind AND run_files.key = files.key)`

/**
 * Each statement repeats the condition of its partial index word for word. Otherwise SQLite's planner does not use the
 * index.
 */
export const fileStatements = ({ inList, list, lockFree }: Dialect) => ({
  liveImage: `
    SELECT key, used_at FROM files
    WHERE kind = 'input' AND sha256 = $1 AND state IN ('writing', 'stored')`,

  // If a sweep is marking the image, waits for the sweep and then finds no row.
  renewImage: `
    UPDATE files SET used_at = CASE WHEN used_at < $2 THEN $2 ELSE used_at END
    WHERE kind = 'input' AND sha256 = $1 AND state IN ('writing', 'stored')
    RETURNING key`,

  findFile: `SELECT state FROM files WHERE kind = $1 AND key = $2`,

  // Adds no row if another process adds the image at the same time.
  addImage: `
    INSERT INTO files (kind, key, sha256, bytes, state, used_at) VALUES ('input', $1, $2, $3, 'writing', $4)
    ON CONFLICT DO NOTHING
    RETURNING key`,

  isRendering: `SELECT 1 FROM runs WHERE id = $1 AND owner = $2 AND status = 'processing'`,

  addOutput: `
    INSERT INTO files (kind, key, sha256, bytes, state, run_id, owner, used_at)
    VALUES ('output', $1, $2, $3, 'writing', $4, $5, $6)
    ON CONFLICT DO NOTHING`,

  // Skips files that are locked by a create that is about to use them.
  lockOld: `
    SELECT key FROM files WHERE kind = $1 AND state = 'stored' AND used_at < $2 AND ${IS_UNUSED}
    ORDER BY used_at LIMIT ${MAX_MARKED}${lockFree}`,

  // A separate statement, so that it sees creates that were committed before the rows were locked.
  markOld: `
    UPDATE files SET state = 'removing', used_at = $3 WHERE kind = $1 AND key ${inList('$2')} AND ${IS_UNUSED}`,

  markOrphans: `
    UPDATE files SET state = 'removing', used_at = $2
    WHERE state <> 'stored' AND state = 'writing' AND (
      kind = 'input' AND used_at < $1
      OR kind = 'output' AND NOT EXISTS (
        SELECT 1 FROM runs WHERE runs.id = files.run_id AND runs.owner = files.owner AND status = 'processing'
      )
    )`,

  markUnknown: `
    INSERT INTO files (kind, key, sha256, state, used_at)
    SELECT CAST($1 AS text), value, '', 'removing', CAST($3 AS bigint) FROM ${list('$2', 'unknown')} WHERE true
    ON CONFLICT DO NOTHING`,

  listMarked: `
    SELECT kind, key FROM files
    WHERE state <> 'stored' AND state = 'removing' AND (kind, key) > ($2, $3) ORDER BY kind, key LIMIT $1`,

  recordRemoved: `
    UPDATE files SET state = 'removed', used_at = $3 WHERE kind = $1 AND key = $2 AND state = 'removing'`,

  forgetRemoved: `DELETE FROM files WHERE state <> 'stored' AND state = 'removed' AND used_at < $1`,
})

export function createFileRecords({
  get,
  all,
  run,
  transaction,
  dialect,
}: Database): FileRecords & Pick<Store, 'addOutputFiles'> {
  const SQL = fileStatements(dialect)
  return {
    async holdImage({ sha256, bytes }, nowMs) {
      for (;;) {
        const young = await get(SQL.liveImage, sha256)
        if (young !== undefined && nowMs - Number(young.used_at) < RENEWED_AFTER_MS) return String(young.key)
        const key = (await get(SQL.findFile, 'input', sha256)) === undefined ? sha256 : spareKeyOf(sha256)
        const row =
          (await get(SQL.renewImage, sha256, nowMs)) ?? (await get(SQL.addImage, key, sha256, bytes, nowMs))
        if (row !== undefined) return String(row.key)
      }
    },
    async findImage(sha256) {
      const row = await get(SQL.liveImage, sha256)
      return row && String(row.key)
    },
    addOutputFiles: ({ id, owner, nowMs }, outputs) =>
      transaction(
        async (tx) => {
          if ((await tx.get(SQL.isRendering, id, owner)) === undefined) return false
          for (const output of outputs)
            await tx.run(SQL.addOutput, outputKey(output), output.sha256, output.bytes, id, owner, nowMs)
          return true
        },
        { repeatable: true },
      ),

    // A repeat after a lost response marks further files.
    markOldFiles: (kind, beforeMs, nowMs) =>
      transaction(
        async (tx) => {
          const keys = (await tx.all(SQL.lockOld, kind, beforeMs)).map(({ key }) => String(key))
          return keys.length === 0 ? 0 : await tx.run(SQL.markOld, kind, keys, nowMs)
        },
        { repeatable: true },
      ),
    markOrphans: (beforeMs, nowMs) => run(SQL.markOrphans, beforeMs, nowMs),
    markUnknownFiles: (kind, keys, nowMs) => run(SQL.markUnknown, kind, keys, nowMs),
    async listMarkedFiles(limit, last) {
      const rows = await all(SQL.listMarked, limit, last?.kind ?? '', last?.key ?? '')
      return rows.map(({ kind, key }) => ({ kind: kind as FileName['kind'], key: String(key) }))
    },
    recordRemoved: async ({ kind, key }, nowMs) => (await run(SQL.recordRemoved, kind, key, nowMs)) > 0,
    forgetRemoved: async (beforeMs) => void (await run(SQL.forgetRemoved, beforeMs)),
  }
}
