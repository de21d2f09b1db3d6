/** Of a JSON text: SQLite turns half a surrogate pair into invalid UTF-8, on which the driver ends the process. */
const PROMPT = `
  CASE WHEN input LIKE '%\\ud%' THEN trim(input -> '$.prompt', '"') ELSE json_extract(input, '$.prompt') END`

/** One with an escape is none that a model takes. */
const ASPECT_RATIO = `
  CASE WHEN input -> '$.aspect_ratio' NOT LIKE '%\\%' THEN substr(json_extract(input, '$.aspect_ratio'), 1, 100) END`

/**
 * Lists read no inputs, which can have 0.8 MB: the beginning of the prompt is a column, and inputs have a table of their own, since
 * SQLite reads a row up to the column that it needs. Files have an owner: runs name the files that they need, so that a file is
 * removed only when no unfinished run needs it. A create can be repeated with its idempotency key.
 */
export const FILES = `
CREATE TABLE run_inputs (
  run_id TEXT PRIMARY KEY REFERENCES runs (id),
  input  TEXT NOT NULL
) STRICT;
INSERT INTO run_inputs (run_id, input) SELECT id, input FROM runs;

-- The first 1,000 characters.
ALTER TABLE runs ADD COLUMN prompt TEXT;
ALTER TABLE runs ADD COLUMN aspect_ratio TEXT;

-- Outputs, and images that came as data: URLs. A key that was removed is not used again.
CREATE TABLE files (
  kind    TEXT NOT NULL CHECK (kind IN ('input', 'output')),
  key     TEXT NOT NULL,
  sha256  TEXT NOT NULL,
  -- Null where only the storage knows it.
  bytes   INTEGER,
  -- writing: known before its bytes are stored. removing: no run may use it any more. removed: its key is not free yet.
  state   TEXT NOT NULL CHECK (state IN ('writing', 'stored', 'removing', 'removed')),
  -- Of an output: the run, and the worker that renders it.
  run_id  TEXT,
  owner   TEXT,
  -- The time from which its age counts.
  used_at INTEGER NOT NULL,
  PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX files_by_age ON files (kind, used_at) WHERE state = 'stored';
CREATE UNIQUE INDEX files_by_content ON files (sha256) WHERE kind = 'input' AND state IN ('writing', 'stored');
CREATE INDEX files_unfinished ON files (state, kind) WHERE state <> 'stored';

-- The files that a run needs until it has ended.
CREATE TABLE run_files (
  run_id TEXT NOT NULL REFERENCES runs (id),
  kind   TEXT NOT NULL,
  key    TEXT NOT NULL,
  PRIMARY KEY (run_id, kind, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_files_of_file ON run_files (kind, key);
CREATE TRIGGER runs_ended AFTER UPDATE OF status ON runs WHEN NEW.status IN ('succeeded', 'failed') BEGIN
  DELETE FROM run_files WHERE run_id = NEW.id;
END;
-- Also an output of a process of the version before.
CREATE TRIGGER outputs_stored AFTER INSERT ON outputs BEGIN
  INSERT INTO files (kind, key, sha256, bytes, state, run_id, owner, used_at)
  SELECT 'output', NEW.token || '/' || NEW.name, NEW.sha256, NEW.bytes, 'stored', id, owner, coalesce(finished_at, created_at)
  FROM runs WHERE id = NEW.run_id
  ON CONFLICT (kind, key) DO UPDATE SET state = 'stored', used_at = excluded.used_at;
END;

INSERT OR IGNORE INTO files (kind, key, sha256, bytes, state, run_id, owner, used_at)
SELECT 'output', token || '/' || name, sha256, bytes, 'stored', run_id, runs.owner, coalesce(finished_at, created_at)
FROM outputs JOIN runs ON runs.id = run_id;
CREATE TEMP TABLE sent_images AS
SELECT runs.id AS run_id, json_extract(image.value, '$.sha256') AS sha256, json_extract(image.value, '$.bytes') AS bytes,
  runs.status, runs.created_at AS used_at
FROM runs, json_each(iif(json_valid(runs.input), runs.input, '{}'), '$.image_urls') AS image WHERE image.type = 'object';
INSERT OR IGNORE INTO files (kind, key, sha256, bytes, state, used_at)
SELECT 'input', sha256, sha256, max(bytes), 'stored', max(used_at) FROM sent_images GROUP BY sha256;
INSERT OR IGNORE INTO run_files (run_id, kind, key)
SELECT run_id, 'input', sha256 FROM sent_images WHERE status IN ('queued', 'processing');
DROP TABLE sent_images;

-- A damaged input must not stop the start.
UPDATE runs SET prompt = substr(${PROMPT}, 1, 1000), aspect_ratio = ${ASPECT_RATIO} WHERE json_valid(input);
UPDATE runs SET input = '';

CREATE TABLE idempotency_keys (
  account_id INTEGER NOT NULL REFERENCES accounts (id),
  key        TEXT NOT NULL,
  -- SHA-256 of model and input.
  request    TEXT NOT NULL,
  run_id     TEXT NOT NULL REFERENCES runs (id),
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_expiring ON idempotency_keys (expires_at);

-- An account has few of them, and may have had many.
CREATE INDEX keys_active ON keys (account_id) WHERE disabled = 0;
`
