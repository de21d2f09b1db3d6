/** Records of files and of the runs that need them, on PostgreSQL. */
import { outputKey } from '../../stored-run.js'
import {
  type FileName,
  type FileRecords,
  MAX_MARKED,
  RENEWED_AFTER_MS,
  type Store,
  spareKeyOf,
} from '../contract.js'
import { FILES } from '../statements.js'
import type { PostgresDatabase } from './database.js'
import { statementsOf } from './driver.js'

export const FILE_SQL = statementsOf({
  ...FILES,

  // If a sweep is marking the image, waits for the sweep and then finds no row.
  renewImage: `
    UPDATE files SET used_at = greatest(used_at, $2)
    WHERE kind = 'input' AND sha256 = $1 AND state IN ('writing', 'stored')
    RETURNING key`,

  // Adds no row if another process adds the image at the same time.
  addImage: `
    INSERT INTO files (kind, key, sha256, bytes, state, used_at)
    SELECT 'input', CASE WHEN EXISTS (SELECT 1 FROM files WHERE kind = 'input' AND key = $1) THEN $2 ELSE $1 END,
      $1, $3::bigint, 'writing', $4::bigint
    ON CONFLICT DO NOTHING
    RETURNING key`,

  addOutputFiles: `
    WITH rendering AS (SELECT id, owner FROM runs WHERE id = $1 AND owner = $2 AND status = 'processing'),
    added AS (
      INSERT INTO files (kind, key, sha256, bytes, state, run_id, owner, used_at)
      SELECT 'output', output.key, output.sha256, output.bytes, 'writing', rendering.id, rendering.owner, $3
      FROM rendering, unnest($4::text[], $5::text[], $6::bigint[]) AS output (key, sha256, bytes)
      ON CONFLICT DO NOTHING
    )
    SELECT id FROM rendering`,

  // Skips files that are locked by a create that is about to use them.
  lockOld: `
    SELECT key FROM files
    WHERE kind = $1 AND state = 'stored' AND used_at < $2
      AND NOT EXISTS (SELECT 1 FROM run_files WHERE run_files.kind = files.kind AND run_files.key = files.key)
    ORDER BY used_at LIMIT ${MAX_MARKED}
    FOR UPDATE SKIP LOCKED`,

  // A separate statement, so that it sees creates that were committed before the rows were locked.
  markOld: `
    UPDATE files SET state = 'removing', used_at = $3
    WHERE kind = $1 AND key = ANY ($2::text[])
      AND NOT EXISTS (SELECT 1 FROM run_files WHERE run_files.kind = files.kind AND run_files.key = files.key)`,

  markUnknown: `
    INSERT INTO files (kind, key, sha256, state, used_at)
    SELECT $1::text, key, '', 'removing', $3 FROM unnest($2::text[]) AS key
    ON CONFLICT DO NOTHING`,
})

export function createFileRecords({
  get,
  all,
  run,
  transaction,
}: Pick<PostgresDatabase, 'get' | 'all' | 'run' | 'transaction'>): FileRecords &
  Pick<Store, 'addOutputFiles'> {
  return {
    async holdImage({ sha256, bytes }, nowMs) {
      for (;;) {
        const young = await get(FILE_SQL.liveImage, sha256)
        if (young !== undefined && nowMs - Number(young.used_at) < RENEWED_AFTER_MS) return String(young.key)
        const row =
          (await get(FILE_SQL.renewImage, sha256, nowMs)) ??
          (await get(FILE_SQL.addImage, sha256, spareKeyOf(sha256), bytes, nowMs))
        if (row !== undefined) return String(row.key)
      }
    },
    async findImage(sha256) {
      const row = await get(FILE_SQL.liveImage, sha256)
      return row && String(row.key)
    },
    addOutputFiles: async ({ id, owner, nowMs }, outputs) =>
      (await get(
        FILE_SQL.addOutputFiles,
        id,
        owner,
        nowMs,
        outputs.map(outputKey),
        outputs.map(({ sha256 }) => sha256),
        outputs.map(({ bytes }) => bytes),
      )) !== undefined,

    // A repeat after a lost response marks further files.
    markOldFiles: (kind, beforeMs, nowMs) =>
      transaction(
        async (tx) => {
          const keys = (await tx.all(FILE_SQL.lockOld, kind, beforeMs)).map(({ key }) => String(key))
          return keys.length === 0 ? 0 : await tx.run(FILE_SQL.markOld, kind, keys, nowMs)
        },
        { repeatable: true },
      ),
    markOrphans: (beforeMs, nowMs) => run(FILE_SQL.markOrphans, beforeMs, nowMs),
    markUnknownFiles: (kind, keys, nowMs) => run(FILE_SQL.markUnknown, kind, keys, nowMs),
    async listMarkedFiles(limit, last) {
      const rows = await all(FILE_SQL.listMarked, limit, last?.kind ?? '', last?.key ?? '')
      return rows.map(({ kind, key }) => ({ kind: kind as FileName['kind'], key: String(key) }))
    },
    recordRemoved: async ({ kind, key }, nowMs) => (await run(FILE_SQL.recordRemoved, kind, key, nowMs)) > 0,
    async forgetRemoved(beforeMs) {
      await run(FILE_SQL.forgetRemoved, beforeMs)
    },
  }
}
