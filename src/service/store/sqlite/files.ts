/** Records of files and of the runs that need them, on SQLite. */
import type { OpenDatabase } from '../../../host/database.js'
import { outputKey } from '../../stored-run.js'
import {
  type FileName,
  type FileRecords,
  MAX_MARKED,
  RENEWED_AFTER_MS,
  type Store,
  spareKeyOf,
} from '../contract.js'
import { FILES, sqliteTexts } from '../statements.js'

const SQL = {
  ...sqliteTexts(FILES),

  renewFile: `UPDATE files SET used_at = max(used_at, ?3) WHERE kind = ?1 AND key = ?2`,

  findFile: `SELECT state FROM files WHERE kind = ?1 AND key = ?2`,

  addImage: `
    INSERT INTO files (kind, key, sha256, bytes, state, used_at) VALUES ('input', ?1, ?2, ?3, 'writing', ?4)`,

  isRendering: `SELECT 1 FROM runs WHERE id = ?1 AND owner = ?2 AND status = 'processing'`,

  addOutput: `
    INSERT OR IGNORE INTO files (kind, key, sha256, bytes, state, run_id, owner, used_at)
    VALUES ('output', ?1, ?2, ?3, 'writing', ?4, ?5, ?6)`,

  markOld: `
    UPDATE files SET state = 'removing', used_at = ?3
    WHERE kind = ?1 AND key IN (
      SELECT key FROM files AS old
      WHERE kind = ?1 AND state = 'stored' AND used_at < ?2
        AND NOT EXISTS (SELECT 1 FROM run_files WHERE run_files.kind = old.kind AND run_files.key = old.key)
      ORDER BY used_at LIMIT ${MAX_MARKED}
    )`,

  markUnknown: `
    INSERT OR IGNORE INTO files (kind, key, sha256, state, used_at)
    SELECT ?1, value, '', 'removing', ?3 FROM json_each(?2)`,
} as const

export function createFileRecords({
  run,
  get,
  all,
  transaction,
}: Pick<OpenDatabase, 'run' | 'get' | 'all' | 'transaction'>): FileRecords & Pick<Store, 'addOutputFiles'> {
  return {
    holdImage: async ({ sha256, bytes }, nowMs) =>
      transaction(() => {
        const live = get(SQL.liveImage, sha256)
        if (live !== undefined) {
          if (nowMs - Number(live.used_at) >= RENEWED_AFTER_MS)
            run(SQL.renewFile, 'input', String(live.key), nowMs)
          return String(live.key)
        }
        const key = get(SQL.findFile, 'input', sha256) === undefined ? sha256 : spareKeyOf(sha256)
        run(SQL.addImage, key, sha256, bytes, nowMs)
        return key
      }),
    async findImage(sha256) {
      const row = get(SQL.liveImage, sha256)
      return row && String(row.key)
    },
    addOutputFiles: async ({ id, owner, nowMs }, outputs) =>
      transaction(() => {
        if (get(SQL.isRendering, id, owner) === undefined) return false
        for (const output of outputs)
          run(SQL.addOutput, outputKey(output), output.sha256, output.bytes, id, owner, nowMs)
        return true
      }),

    markOldFiles: async (kind, beforeMs, nowMs) => Number(run(SQL.markOld, kind, beforeMs, nowMs).changes),
    markOrphans: async (beforeMs, nowMs) => Number(run(SQL.markOrphans, beforeMs, nowMs).changes),
    markUnknownFiles: async (kind, keys, nowMs) =>
      Number(run(SQL.markUnknown, kind, JSON.stringify(keys), nowMs).changes),
    listMarkedFiles: async (limit, last) =>
      all(SQL.listMarked, limit, last?.kind ?? '', last?.key ?? '').map(({ kind, key }) => ({
        kind: kind as FileName['kind'],
        key: String(key),
      })),
    recordRemoved: async ({ kind, key }, nowMs) => run(SQL.recordRemoved, kind, key, nowMs).changes > 0,
    async forgetRemoved(beforeMs) {
      run(SQL.forgetRemoved, beforeMs)
    },
  }
}
