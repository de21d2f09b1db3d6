/**
 * Statements for runs, outputs and workers. The status of a run changes only as `LOCAL_MOVES` (protocol/run-state.ts)
 * allows: each statement that changes it also checks the previous status.
 */

import { countUnfinishedSql } from '../model-use.js'
import { STORED_RUN_COLUMNS } from '../rows.js'
import { RUNS } from '../statements.js'
import { CLAIMS_LOCK, LOCKS, statementsOf } from './driver.js'

/** Current time of the database's clock, in milliseconds. */
const NOW_MS = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'

const RUN_COLUMNS = `${STORED_RUN_COLUMNS}, input, failure`

/**
 * Refunds the failed runs that `moved` returns. Sums the refunds first, because an UPDATE uses only one of several rows
 * for the same account. Locks accounts before keys, as `addRun` does. `refunds`: SQL for a boolean.
 */
const refundIf = (refunds: string): string => `
    failed AS (SELECT * FROM moved WHERE status = 'failed' AND price <> 0 AND ${refunds}),
    paid AS (
      UPDATE accounts SET balance = balance + refund.amount
      FROM (SELECT account_id, sum(price)::bigint AS amount FROM failed GROUP BY account_id) AS refund
      WHERE accounts.id = refund.account_id
      RETURNING accounts.id
    ),
    spent AS (
      UPDATE keys SET spent = spent - refund.amount
      FROM (
        SELECT key_id, sum(price)::bigint AS amount FROM failed WHERE key_id IS NOT NULL GROUP BY key_id
      ) AS refund
      WHERE keys.id = refund.key_id AND (SELECT count(*) FROM paid) > 0
    ),
    entered AS (
      INSERT INTO credits (account_id, kind, amount, run_id, key_id, created_at)
      SELECT account_id, 'refund', price, id, key_id, finished_at FROM failed
    )
    SELECT count(*) AS moved, count(*) FILTER (WHERE status = 'failed') AS runs,
      (SELECT coalesce(sum(price), 0)::bigint FROM failed) AS refunded
    FROM moved`

/**
 * Returns the first queued run of the model after this place in the index runs_of_model. Compares whole rows of the
 * index, because PostgreSQL could use any other index for equal columns, and would then read the queued runs of other
 * models.
 */
const firstAfter = (model: string, account: string, sequence: string): string => `(
        SELECT * FROM (
          SELECT model, account_id, sequence FROM runs
          WHERE status = 'queued' AND (model, account_id, sequence) > (${model}, ${account}, ${sequence})
          ORDER BY model, account_id, sequence LIMIT 1
        ) AS next
        WHERE next.model = ${model}
      )`

/** Returns the oldest queued run of an account among the models in `carried`: one index lookup per model. */
const oldestOf = (account: string): string => `(
        SELECT min(first.sequence) AS sequence
        FROM carried CROSS JOIN LATERAL ${firstAfter('carried.model', account, '0')} AS first
        WHERE first.account_id = ${account}
      )`

const workersSql = (columns: string): string => `
    SELECT ${columns}, NOT EXISTS (
      SELECT 1 FROM pg_locks
      WHERE locktype = 'advisory' AND classid = ${LOCKS} AND objid = slot::bigint AND objsubid = 2 AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    ) AS "isDisconnected"
    FROM workers`

const REFUND_COLUMNS = 'id, account_id, key_id, price, status, finished_at'

export const SQL = statementsOf({
  ...RUNS,

  // Executed for every status request, so it reads no other columns. `+ 0` keeps the planner off the index of the
  // account's runs until a new database has statistics.
  findRun: `
    SELECT ${RUN_COLUMNS},
      CASE WHEN status = 'succeeded' THEN (
        SELECT json_agg(outputs ORDER BY position) FROM outputs WHERE run_id = runs.id
      ) END AS outputs
    FROM runs WHERE id = $1 AND account_id + 0 = $2`,

  // Allows one claim at a time, so that each claim sees the turns that earlier claims took.
  lockClaims: `SELECT pg_advisory_xact_lock(${LOCKS}, ${CLAIMS_LOCK})`,

  // Makes a process that reaps this worker wait until the claim is committed, so that it finds the run.
  holdLease: `SELECT 1 FROM workers WHERE id = $1 FOR KEY SHARE`,

  // A few index lookups for any number of runs: turns_queued contains the accounts with queued runs in claim order, and
  // `near` is the first of them with a run of the worker's models. `carried` contains those models that are queued at
  // all. If many accounts that come first wait for other models, `far` reads the accounts of the worker's models
  // instead. Both skip accounts with runs in processing: they are few, and are chosen only if no other account waits.
  // The preferred runs are materialized, because a plan that joins them with the queue would read the whole queue.
  claimRun: `
    WITH RECURSIVE carried AS MATERIALIZED (
      SELECT first.* FROM unnest($7::text[]) AS name CROSS JOIN LATERAL ${firstAfter('name', '0', '0')} AS first
    ),
    busy AS MATERIALIZED (
      SELECT account_id, count(*) AS runs FROM runs WHERE status = 'processing' GROUP BY account_id
    ),
    near AS MATERIALIZED (
      SELECT account_id, oldest.sequence
      FROM (
        SELECT account_id, served, queued_since FROM turns
        WHERE $4 = 'all' AND queued_since IS NOT NULL AND account_id NOT IN (SELECT account_id FROM busy)
          AND account_id <> ALL ($6::bigint[])
        ORDER BY served, queued_since
        LIMIT (SELECT 1 + 1000 / (1 + count(*)) FROM carried)
      ) AS front CROSS JOIN LATERAL ${oldestOf('front.account_id')} AS oldest
      WHERE oldest.sequence IS NOT NULL
      ORDER BY served, queued_since
      LIMIT 1
    ),
    queues AS (
      SELECT model, account_id, sequence FROM carried
      UNION ALL
      SELECT next.*
      FROM queues CROSS JOIN LATERAL ${firstAfter('queues.model', 'queues.account_id', String(2n ** 63n - 1n))} AS next
    ),
    far AS (
      SELECT account_id, min(sequence) AS sequence
      FROM queues JOIN turns USING (account_id)
      WHERE $4 = 'all' AND NOT EXISTS (SELECT 1 FROM near) AND account_id NOT IN (SELECT account_id FROM busy)
        AND account_id <> ALL ($6::bigint[])
      GROUP BY account_id, served, queued_since
      ORDER BY served, queued_since
      LIMIT 1
    ),
    idle AS MATERIALIZED (SELECT * FROM near UNION ALL SELECT * FROM far),
    preferred AS MATERIALIZED (
      SELECT account_id, sequence, status, model FROM runs WHERE id = ANY ($3::text[])
    ),
    candidates AS (
      SELECT account_id, sequence, 0 AS preferred FROM idle
      UNION ALL
      SELECT busy.account_id, oldest.sequence, 0
      FROM busy CROSS JOIN LATERAL ${oldestOf('busy.account_id')} AS oldest
      WHERE $4 = 'all' AND NOT EXISTS (SELECT 1 FROM idle) AND oldest.sequence IS NOT NULL
      UNION ALL
      SELECT account_id, sequence, 1 FROM preferred WHERE status = 'queued' AND model = ANY ($7::text[])
    ),
    chosen AS MATERIALIZED (
      SELECT candidates.sequence
      FROM candidates LEFT JOIN turns USING (account_id) LEFT JOIN busy USING (account_id)
      WHERE account_id <> ALL ($6::bigint[])
      ORDER BY coalesce(busy.runs, 0), coalesce(turns.served, 0), candidates.preferred DESC, candidates.sequence
      LIMIT 1
    ),
    claimed AS (
      UPDATE runs SET status = 'processing', owner = $1, started_at = $2, claim = $5
      WHERE sequence = (SELECT sequence FROM chosen) AND status = 'queued'
        AND EXISTS (SELECT 1 FROM workers WHERE id = $1)
      RETURNING *
    ),
    served AS (
      INSERT INTO turns (account_id, served) SELECT account_id, nextval('turns_served') FROM claimed
      ON CONFLICT (account_id) DO UPDATE SET served = excluded.served
    )
    SELECT ${RUN_COLUMNS} FROM claimed AS runs`,

  // Finds the run of a claim whose response was lost.
  findClaimed: `
    SELECT ${RUN_COLUMNS}, claim
    FROM runs WHERE owner = $1 AND status = 'processing' AND claim = ANY ($2::text[]) LIMIT 1`,

  finishRun: `
    WITH finished AS (
      UPDATE runs SET status = 'succeeded', finished_at = $3
      WHERE id = $1 AND owner = $2 AND status = 'processing'
      RETURNING id
    ),
    added AS (
      INSERT INTO outputs (run_id, position, token, name, content_type, bytes, sha256)
      SELECT id, position - 1, token, name, content_type, bytes, sha256
      FROM finished, unnest($4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[])
        WITH ORDINALITY AS output (token, name, content_type, bytes, sha256, position)
    )
    SELECT id FROM finished`,

  // Checks whether `finishRun` was committed although its response was lost. Each render has its own tokens.
  wasFinished: `
    SELECT 1 FROM runs WHERE id = $1 AND owner = $2 AND status = 'succeeded'
      AND NOT EXISTS (SELECT 1 FROM outputs WHERE run_id = $1 AND token <> ALL ($3::text[]))`,

  failRun: `
    WITH moved AS (
      UPDATE runs SET status = 'failed', finished_at = $3, failure = $4
      WHERE id = $1 AND owner = $2 AND status = 'processing'
      RETURNING ${REFUND_COLUMNS}
    ),${refundIf('$5::boolean')}`,

  // Moves one run of the owner. If $2 is null, moves all runs that it was rendering. The last attempt of a failed run
  // is in the run itself.
  recordCrash: `
    WITH rendering AS (
      SELECT sequence, started_at AS since FROM runs
      WHERE owner = $1 AND status = 'processing' AND ($2::text IS NULL OR id = $2)
      FOR NO KEY UPDATE
    ),
    moved AS (
      UPDATE runs SET
        attempts = attempts + 1,
        status = CASE WHEN attempts + 1 >= $3 THEN 'failed' ELSE 'queued' END,
        owner = CASE WHEN attempts + 1 >= $3 THEN owner ELSE '' END,
        failure = CASE WHEN attempts + 1 >= $3 THEN $4 END,
        started_at = CASE WHEN attempts + 1 >= $3 THEN started_at END,
        finished_at = CASE WHEN attempts + 1 >= $3 THEN $5::bigint END
      FROM rendering WHERE runs.sequence = rendering.sequence
      RETURNING ${REFUND_COLUMNS}, since
    ),
    lost AS (
      INSERT INTO lost_attempts (run_id, started_at, ended_at, result)
      SELECT id, since, $5::bigint, 'crashed' FROM moved WHERE status = 'queued'
    ),${refundIf('$6::boolean')}`,

  // Adds the row and takes the lock in one statement, so that no node sees the row without the lock.
  addWorker: `
    WITH added AS (
      INSERT INTO workers (id, heartbeat_at, models) VALUES ($1, ${NOW_MS}, $2)
      ON CONFLICT (id) DO UPDATE SET
        heartbeat_at = greatest(workers.heartbeat_at + 1, excluded.heartbeat_at), models = excluded.models
      RETURNING slot
    )
    SELECT slot, pg_try_advisory_lock(${LOCKS}, slot) AS "isLocked" FROM added`,

  // $2: whether this connection already holds the lock.
  extendLease: `
    WITH extended AS (
      UPDATE workers SET heartbeat_at = greatest(heartbeat_at + 1, ${NOW_MS}) WHERE id = $1 RETURNING slot
    )
    SELECT slot, CASE WHEN $2::boolean THEN true ELSE pg_try_advisory_lock(${LOCKS}, slot) END AS "isLocked" FROM extended`,

  // Ends a connection that this process has lost but that still holds the lock, because the server has not noticed the
  // loss.
  endHolder: `
    SELECT pg_terminate_backend(pid, 1000) FROM pg_locks
    WHERE locktype = 'advisory' AND classid = ${LOCKS} AND objid = $1::integer AND objsubid = 2 AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND pid <> pg_backend_pid()`,

  unlock: `SELECT pg_advisory_unlock(${LOCKS}, $1)`,

  // Executed once a second, so it does not read the models.
  listWorkers: workersSql('id, heartbeat_at'),

  listCarried: workersSql('models'),

  countUnfinished: countUnfinishedSql('runs', 'runs'),

  requeueRuns: `
    WITH rendering AS (
      SELECT sequence, id, started_at FROM runs WHERE owner = $1 AND status = 'processing' FOR NO KEY UPDATE
    ),
    lost AS (
      INSERT INTO lost_attempts (run_id, started_at, ended_at, result)
      SELECT id, started_at, $2::bigint, 'returned' FROM rendering
    )
    UPDATE runs SET status = 'queued', owner = '', started_at = NULL
    FROM rendering WHERE runs.sequence = rendering.sequence`,

  notifyQueued: `SELECT pg_notify('rushes_queued', $1)`,

  askNothing: `SELECT 1`,

  writeNothing: `UPDATE format SET checked_at = ${NOW_MS}`,
})
