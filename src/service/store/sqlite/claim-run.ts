/**
 * The claim of a worker, on SQLite: one index lookup per account, for a queue of any length. `waiting` steps from one
 * account to the next in the index runs_queue. `near` is the first account in claim order with a run of the worker's
 * models. If many accounts that come first wait for other models, `queues` contains the oldest run of each account for
 * each model of the worker instead. `candidates` adds the preferred runs.
 */
export const CLAIM_RUN = `
  WITH RECURSIVE busy AS MATERIALIZED (
    SELECT account_id, count(*) AS runs FROM runs INDEXED BY runs_rendering WHERE status = 'processing'
    GROUP BY account_id
  ),
  carried AS MATERIALIZED (
    SELECT value AS model FROM json_each(?6)
    WHERE EXISTS (SELECT 1 FROM runs INDEXED BY runs_of_model WHERE status = 'queued' AND model = value)
  ),
  waiting (account_id) AS (
    SELECT min(account_id) FROM runs INDEXED BY runs_queue
    WHERE ?4 = 'all' AND EXISTS (SELECT 1 FROM carried) AND status = 'queued'
    UNION ALL
    SELECT (
      SELECT min(account_id) FROM runs INDEXED BY runs_queue
      WHERE status = 'queued' AND account_id > waiting.account_id
    )
    FROM waiting WHERE waiting.account_id IS NOT NULL
  ),
  front AS MATERIALIZED (
    SELECT waiting.account_id
    FROM waiting JOIN accounts ON accounts.id = waiting.account_id
    LEFT JOIN busy ON busy.account_id = waiting.account_id
    WHERE waiting.account_id NOT IN (SELECT value FROM json_each(?5))
    ORDER BY coalesce(busy.runs, 0), accounts.served, (
      SELECT min(sequence) FROM runs INDEXED BY runs_queue
      WHERE status = 'queued' AND account_id = waiting.account_id
    )
    LIMIT (SELECT 1 + 1000 / (1 + count(*)) FROM carried)
  ),
  near AS MATERIALIZED (
    SELECT * FROM (
      SELECT account_id, (
        SELECT min((
          SELECT min(sequence) FROM runs INDEXED BY runs_of_model
          WHERE status = 'queued' AND model = carried.model AND account_id = front.account_id
        ))
        FROM carried
      ) AS sequence
      FROM front
      LIMIT -1
    )
    WHERE sequence IS NOT NULL
    LIMIT 1
  ),
  queues (model, account_id, sequence) AS (
    SELECT runs.model, runs.account_id, runs.sequence
    FROM carried CROSS JOIN runs
    WHERE NOT EXISTS (SELECT 1 FROM near) AND ?4 = 'all' AND runs.sequence = (
      SELECT sequence FROM runs INDEXED BY runs_of_model
      WHERE status = 'queued' AND model = carried.model ORDER BY account_id, sequence LIMIT 1
    )
    UNION ALL
    SELECT runs.model, runs.account_id, runs.sequence
    FROM queues CROSS JOIN runs
    WHERE runs.sequence = (
      SELECT sequence FROM runs INDEXED BY runs_of_model
      WHERE status = 'queued' AND model = queues.model AND account_id > queues.account_id
      ORDER BY account_id, sequence LIMIT 1
    )
  ),
  candidates AS (
    SELECT account_id, 0 AS preferred, sequence FROM near
    UNION ALL
    SELECT account_id, 0, sequence FROM queues
    UNION ALL
    SELECT account_id, 1, sequence FROM runs
    WHERE id IN (SELECT value FROM json_each(?3)) AND status = 'queued'
      AND model IN (SELECT value FROM json_each(?6))
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
  RETURNING *`
