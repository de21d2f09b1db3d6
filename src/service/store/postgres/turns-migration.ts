/**
 * A row of `turns` tells whether its account has queued runs, so that a claim finds the next account in an index and looks at no
 * other. Triggers keep it, because nodes of the version before write into the same tables during an upgrade.
 *
 * A flag and not a number: a create of an account with queued runs changes nothing here, so creates and claims do not wait for
 * each other. Whoever queues a run holds the row FOR KEY SHARE until its commit. The flag is removed under FOR UPDATE, by a
 * statement that began after this lock was taken, so it sees every run that was queued before.
 */
export const TURNS = `
LOCK TABLE runs IN SHARE ROW EXCLUSIVE MODE;

-- The run with which the queue of the account began: accounts that were never served are served in this order. Null when no run of
-- the account is queued.
ALTER TABLE turns ADD COLUMN queued_since bigint;

INSERT INTO turns (account_id, served, queued_since)
SELECT account_id, 0, min(sequence) FROM runs WHERE status = 'queued' GROUP BY account_id
ON CONFLICT (account_id) DO UPDATE SET queued_since = excluded.queued_since;

-- The order of claims.
CREATE INDEX turns_queued ON turns (served, queued_since) WHERE queued_since IS NOT NULL;

CREATE FUNCTION enter_queue() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM rushes.turns WHERE account_id = NEW.account_id AND queued_since IS NOT NULL FOR KEY SHARE;
  IF NOT FOUND THEN
    INSERT INTO rushes.turns (account_id, served, queued_since) VALUES (NEW.account_id, 0, NEW.sequence)
    ON CONFLICT (account_id) DO UPDATE SET queued_since = coalesce(turns.queued_since, excluded.queued_since);
  END IF;
  RETURN NULL;
END $$;

-- A claim does not wait: if a run is being queued, the flag stays.
CREATE FUNCTION leave_queue() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM rushes.runs WHERE account_id = NEW.account_id AND status = 'queued') THEN
    RETURN NULL;
  END IF;
  PERFORM 1 FROM rushes.turns WHERE account_id = NEW.account_id FOR UPDATE SKIP LOCKED;
  IF FOUND THEN
    UPDATE rushes.turns SET queued_since = NULL
    WHERE account_id = NEW.account_id
      AND NOT EXISTS (SELECT 1 FROM rushes.runs WHERE account_id = NEW.account_id AND status = 'queued');
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER runs_added AFTER INSERT ON runs
FOR EACH ROW WHEN (NEW.status = 'queued') EXECUTE FUNCTION enter_queue();
CREATE TRIGGER runs_returned AFTER UPDATE OF status ON runs
FOR EACH ROW WHEN (NEW.status = 'queued' AND OLD.status <> 'queued') EXECUTE FUNCTION enter_queue();
CREATE TRIGGER runs_taken AFTER UPDATE OF status ON runs
FOR EACH ROW WHEN (OLD.status = 'queued' AND NEW.status <> 'queued') EXECUTE FUNCTION leave_queue();
`
