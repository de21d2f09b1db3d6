/**
 * The statements about runs, outputs and workers. A run moves only as `LOCAL_MOVES` (protocol/run.ts) allows: each
 * statement that moves one names the status that it comes from.
 */
export const SQL = {
  addRun: `
    INSERT INTO runs (id, account_id, key_id, model, kind, input, prompt, aspect_ratio, price, status, owner, created_at)
    VALUES (?1, ?2, ?3, ?4, ?5, '', ?6, ?7, ?8, 'queued', '', ?9)`,

  addInput: `INSERT INTO run_inputs (run_id, input) VALUES (?1, ?2)`,

  // An older process, which still runs while a newer one migrates the file, writes the input into the run.
  inputOfRun: `
    SELECT coalesce(run_inputs.input, runs.input) AS input FROM runs LEFT JOIN run_inputs ON run_id = id WHERE id = ?1`,

  liveImage: `SELECT 1 FROM files WHERE kind = 'input' AND key = ?1 AND state IN ('writing', 'stored')`,

  recordImages: `
    UPDATE files SET state = 'stored'
    WHERE kind = 'input' AND key IN (SELECT value ->> 'key' FROM json_each(?1)) AND state = 'writing'`,

  addRunFiles: `
    INSERT OR IGNORE INTO run_files (run_id, kind, key)
    SELECT ?1, files.kind, files.key
    FROM json_each(?2) AS wanted
    JOIN files ON files.kind = wanted.value ->> 'kind' AND files.key = wanted.value ->> 'key' AND state = 'stored'`,

  createdBefore: `
    SELECT run_id, request FROM idempotency_keys WHERE account_id = ?1 AND key = ?2 AND expires_at > ?3`,

  removeExpiredKeys: `DELETE FROM idempotency_keys WHERE expires_at <= ?1`,

  addIdempotencyKey: `
    INSERT INTO idempotency_keys (account_id, key, request, run_id, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)`,

  // Asked with every status request: only the columns that are needed.
  findRun: `
    SELECT id, account_id, model, kind, status, coalesce(run_inputs.input, runs.input) AS input, error_code, error_message,
      created_at, started_at, finished_at
    FROM runs LEFT JOIN run_inputs ON run_id = id WHERE id = ?1 AND account_id = ?2`,

  outputsOfRun: `SELECT * FROM outputs WHERE run_id = ?1 ORDER BY position`,

  // A queue of any length costs one indexed look per account: `queues` steps from one account to the next in the index
  // runs_queue, and `candidates` takes the oldest run of each, beside the preferred ones.
  claimRun: `
    WITH RECURSIVE queues (account_id) AS (
      SELECT min(account_id) FROM runs WHERE status = 'queued'
      UNION ALL
      SELECT (SELECT min(account_id) FROM runs WHERE status = 'queued' AND account_id > queues.account_id)
      FROM queues WHERE queues.account_id IS NOT NULL
    ),
    candidates AS (
      SELECT account_id, 0 AS preferred, (
        SELECT min(sequence) FROM runs WHERE status = 'queued' AND account_id = queues.account_id
      ) AS sequence
      FROM queues
      WHERE ?4 = 'all' AND account_id IS NOT NULL
      UNION ALL
      SELECT account_id, 1, sequence FROM runs
      WHERE id IN (SELECT value FROM json_each(?3)) AND status = 'queued'
    ),
    busy AS MATERIALIZED (
      SELECT account_id, count(*) AS runs FROM runs INDEXED BY runs_rendering WHERE status = 'processing'
      GROUP BY account_id
    )
    UPDATE runs SET status = 'processing', owner = ?1, started_at = ?2
    WHERE sequence = (
      SELECT candidates.sequence
      FROM candidates JOIN accounts ON accounts.id = candidates.account_id
      LEFT JOIN busy ON busy.account_id = candidates.account_id
      WHERE candidates.account_id NOT IN (SELECT value FROM json_each(?5))
      ORDER BY coalesce(busy.runs, 0), accounts.served, candidates.preferred DESC, candidates.sequence
      LIMIT 1
    )
    AND EXISTS (SELECT 1 FROM workers WHERE id = ?1)
    RETURNING *`,

  markServed: `UPDATE accounts SET served = (SELECT max(served) + 1 FROM accounts) WHERE id = ?1`,

  finishRun: `
    UPDATE runs SET status = 'succeeded', finished_at = ?3
    WHERE id = ?1 AND owner = ?2 AND status = 'processing'`,

  addOutput: `
    INSERT INTO outputs (run_id, position, token, name, content_type, bytes, sha256)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)`,

  failRun: `
    UPDATE runs SET status = 'failed', finished_at = ?3, error_code = ?4, error_message = ?5
    WHERE id = ?1 AND owner = ?2 AND status = 'processing'
    RETURNING *`,

  // One run of the owner; when ?2 is null, all runs that it was rendering.
  recordCrash: `
    UPDATE runs SET
      attempts = attempts + 1,
      status = iif(attempts + 1 >= ?3, 'failed', 'queued'),
      owner = iif(attempts + 1 >= ?3, owner, ''),
      error_code = iif(attempts + 1 >= ?3, ?4, NULL),
      error_message = iif(attempts + 1 >= ?3, ?5, NULL),
      started_at = iif(attempts + 1 >= ?3, started_at, NULL),
      finished_at = iif(attempts + 1 >= ?3, ?6, NULL)
    WHERE owner = ?1 AND status = 'processing' AND (?2 IS NULL OR id = ?2)
    RETURNING *`,

  // Before recordCrash, for the runs that it returns to the queue. The attempt of a run that fails is in the run itself.
  recordCrashedAttempts: `
    INSERT INTO lost_attempts (run_id, started_at, ended_at, result)
    SELECT id, started_at, ?4, 'crashed' FROM runs
    WHERE owner = ?1 AND status = 'processing' AND (?2 IS NULL OR id = ?2) AND attempts + 1 < ?3`,

  findOutput: `SELECT * FROM outputs WHERE token = ?1 AND name = ?2`,

  // One scan of the index runs_queue, which has the kind: 100,000 queued runs take 10 to 17 ms. GROUP BY would sort, and take
  // three times as long.
  queueLengths: `
    SELECT count(*) FILTER (WHERE kind = 'video') AS video, count(*) FILTER (WHERE kind = 'image') AS image
    FROM runs WHERE status = 'queued'`,

  renewLease: `
    INSERT INTO workers (id, host, pid, born_at, heartbeat_at)
    VALUES (?1, ?2, ?3, ?4, CAST(unixepoch('subsec') * 1000 AS INTEGER))
    ON CONFLICT (id) DO UPDATE SET heartbeat_at = max(heartbeat_at + 1, excluded.heartbeat_at)`,

  extendLease: `
    UPDATE workers SET heartbeat_at = max(heartbeat_at + 1, CAST(unixepoch('subsec') * 1000 AS INTEGER))
    WHERE id = ?1`,

  listWorkers: `SELECT * FROM workers`,

  removeExpiredWorker: `DELETE FROM workers WHERE id = ?1 AND heartbeat_at = ?2`,

  recordReturnedAttempts: `
    INSERT INTO lost_attempts (run_id, started_at, ended_at, result)
    SELECT id, started_at, ?2, 'returned' FROM runs WHERE owner = ?1 AND status = 'processing'`,

  requeueRuns: `
    UPDATE runs SET status = 'queued', owner = '', started_at = NULL WHERE owner = ?1 AND status = 'processing'`,

  removeWorker: `DELETE FROM workers WHERE id = ?1`,

  writeNothing: `UPDATE accounts SET served = served WHERE id = (SELECT min(id) FROM accounts)`,
} as const
