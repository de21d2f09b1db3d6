/**
 * A row of `turns` tells whether its account has queued runs, so that a claim finds the next account in an index and looks at no
 * other. Triggers keep it, because nodes of the version before write into the same tables during an upgrade.
 *
 * A flag and not a number: a create on an account with queued runs writes nothing here, and neither waits for claims nor lets them
 * wait. Whoever queues a run holds the row FOR KEY SHARE until its commit; the flag is removed under FOR UPDATE, and
 * only by a statement that began after this lock was taken, so it sees every run that was queued before.
 */
export const TURNS = `
LOCK TABLE runs IN SHARE ROW EXCLUSIVE MODE;

-- Null: no run is queued. Else the run with which the queue began, as accounts that were never served are served in this order.
ALTER TABLE turns ADD COLUMN queued_since bigint;

INSERT INTO turns (account_id, served, queued_since)
SELECT account_id, 0, min(sequence) FROM runs WHERE status = 'queued' GROUP BY account_id
ON CONFLICT (account_id) DO UPDATE SET queued_since = excluded.queued_since;

-- The order of claims.
CREATE INDEX turns_queued ON turns (served, queued_since) WHERE queued_since IS NOT NULL;

CREATE FUNCTION follow_queue() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  emptied bigint[];
BEGIN
  WITH known AS (
    SELECT account_id FROM rushes.turns
    WHERE queued_since IS NOT NULL AND account_id IN (SELECT account_id FROM changed WHERE status = 'queued')
    ORDER BY account_id FOR KEY SHARE
  )
  INSERT INTO rushes.turns (account_id, served, queued_since)
  SELECT account_id, 0, min(sequence) FROM changed
  WHERE status = 'queued' AND account_id NOT IN (SELECT account_id FROM known)
  GROUP BY account_id ORDER BY account_id
  ON CONFLICT (account_id) DO UPDATE SET queued_since = coalesce(turns.queued_since, excluded.queued_since);

  -- A claim waits for nobody: if a run is being queued, the flag stays.
  SELECT array_agg(account_id) INTO emptied FROM (
    SELECT account_id FROM rushes.turns
    WHERE queued_since IS NOT NULL AND account_id IN (SELECT account_id FROM changed WHERE status <> 'queued')
      AND NOT EXISTS (SELECT 1 FROM rushes.runs WHERE runs.account_id = turns.account_id AND status = 'queued')
    FOR UPDATE SKIP LOCKED
  ) AS locked;
  IF emptied IS NOT NULL THEN
    UPDATE rushes.turns SET queued_since = NULL
    WHERE account_id = ANY (emptied)
      AND NOT EXISTS (SELECT 1 FROM rushes.runs WHERE runs.account_id = turns.account_id AND status = 'queued');
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER runs_added AFTER INSERT ON runs REFERENCING NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION follow_queue();
CREATE TRIGGER runs_moved AFTER UPDATE ON runs REFERENCING NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION follow_queue();
`
