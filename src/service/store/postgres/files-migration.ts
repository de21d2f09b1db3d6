/**
 * Lists read no inputs, which can have 0.8 MB. Files have an owner: runs name the files that they need, so that a file is removed
 * only when no unfinished run needs it. A create can be repeated with its idempotency key.
 */
export const FILES = `
-- In the order of a create. With weaker locks that grow, the requests of running nodes would deadlock with this.
LOCK TABLE accounts, keys, runs, outputs, format IN ACCESS EXCLUSIVE MODE;

ALTER TABLE runs ADD COLUMN aspect_ratio text;
-- The first 1,000 characters; nodes of the version before still write all of them. The input is not parsed: a damaged one must
-- not stop the start.
UPDATE runs SET prompt = left(prompt, 1000),
  aspect_ratio = substring(input from '"aspect_ratio":"([^"\\\\]{1,100})"');

-- Outputs, and images that came as data: URLs. A key that was removed is not used again.
CREATE TABLE files (
  kind    text NOT NULL CHECK (kind IN ('input', 'output')),
  key     text NOT NULL,
  sha256  text NOT NULL,
  -- Null where only the storage knows it.
  bytes   bigint,
  -- writing: known before its bytes are stored. removing: no run may use it any more. removed: its key is not free yet.
  state   text NOT NULL CHECK (state IN ('writing', 'stored', 'removing', 'removed')),
  -- Of an output: the run, and the worker that renders it.
  run_id  text,
  owner   text,
  -- The time from which its age counts.
  used_at bigint NOT NULL,
  PRIMARY KEY (kind, key)
);
CREATE INDEX files_by_age ON files (kind, used_at) WHERE state = 'stored';
CREATE UNIQUE INDEX files_by_content ON files (sha256) WHERE kind = 'input' AND state IN ('writing', 'stored');
CREATE INDEX files_unfinished ON files (state, kind) WHERE state <> 'stored';

-- The files that a run needs until it has ended. They are written before their run, in its transaction.
CREATE TABLE run_files (
  run_id text NOT NULL REFERENCES runs (id) DEFERRABLE INITIALLY DEFERRED,
  kind   text NOT NULL,
  key    text NOT NULL,
  PRIMARY KEY (run_id, kind, key)
);
CREATE INDEX run_files_of_file ON run_files (kind, key);
CREATE FUNCTION release_files() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM rushes.run_files WHERE run_id = NEW.id;
  RETURN NULL;
END $$;
CREATE TRIGGER runs_ended AFTER UPDATE OF status ON runs
FOR EACH ROW WHEN (NEW.status IN ('succeeded', 'failed')) EXECUTE FUNCTION release_files();
-- Also an output of a node of the version before.
CREATE FUNCTION store_output() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO rushes.files (kind, key, sha256, bytes, state, run_id, owner, used_at)
  SELECT 'output', NEW.token || '/' || NEW.name, NEW.sha256, NEW.bytes, 'stored', id, owner, coalesce(finished_at, created_at)
  FROM rushes.runs WHERE id = NEW.run_id
  ON CONFLICT (kind, key) DO UPDATE SET state = 'stored', used_at = excluded.used_at;
  RETURN NULL; END $$;
CREATE TRIGGER outputs_stored AFTER INSERT ON outputs FOR EACH ROW EXECUTE FUNCTION store_output();

INSERT INTO files (kind, key, sha256, bytes, state, run_id, owner, used_at)
SELECT 'output', token || '/' || name, sha256, bytes, 'stored', run_id, runs.owner, coalesce(finished_at, created_at)
FROM outputs JOIN runs ON runs.id = run_id;
INSERT INTO files (kind, key, sha256, state, used_at)
SELECT 'input', image, image, 'stored', max(created_at) FROM runs, unnest(images) AS image GROUP BY image;
INSERT INTO run_files (run_id, kind, key)
SELECT DISTINCT id, 'input', image FROM runs, unnest(images) AS image WHERE status IN ('queued', 'processing');

CREATE TABLE idempotency_keys (
  account_id bigint NOT NULL REFERENCES accounts (id),
  key        text NOT NULL,
  -- SHA-256 of model and input.
  request    text NOT NULL,
  run_id     text NOT NULL REFERENCES runs (id) DEFERRABLE INITIALLY DEFERRED,
  expires_at bigint NOT NULL,
  PRIMARY KEY (account_id, key)
);
CREATE INDEX idempotency_keys_expiring ON idempotency_keys (expires_at);

-- Of the migration from a data folder that filled these tables: it can be asked whether it was committed.
ALTER TABLE format ADD COLUMN migration text;

-- An account has few of them, and may have had many.
CREATE INDEX keys_active ON keys (account_id) WHERE NOT disabled;
DROP INDEX keys_of_account;
CREATE INDEX keys_of_account ON keys (account_id, id);
`
