/**
 * Format of `service.db`. Script n migrates the file from version n to n+1. Never change a released script: add a new
 * one.
 */

/**
 * SQL for the prompt of a JSON input. A prompt with surrogate escapes stays escaped: SQLite turns an unpaired surrogate
 * into invalid UTF-8, which makes the driver end the process.
 */
const PROMPT = `
  CASE WHEN input LIKE '%\\ud%' THEN trim(input -> '$.prompt', '"') ELSE json_extract(input, '$.prompt') END`

/** SQL for the aspect ratio. Skips a value with an escape, because no model accepts it. */
const ASPECT_RATIO = `
  CASE WHEN input -> '$.aspect_ratio' NOT LIKE '%\\%' THEN substr(json_extract(input, '$.aspect_ratio'), 1, 100) END`

/**
 * Adds a table for inputs, which can be 0.8 MB, because SQLite reads a row up to the column that it needs. Lists read
 * no inputs: the beginning of the prompt becomes a column. Adds records of files and of the runs that need them, so
 * that a file is removed only if no unfinished run needs it. Adds idempotency keys, with which a create can be
 * repeated.
 */
const FILES = `
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

const FIRST = `
CREATE TABLE accounts (
  id         INTEGER PRIMARY KEY,
  name       TEXT NOT NULL UNIQUE,
  created_at INTEGER NOT NULL
) STRICT;

-- Only the SHA-256 of a key is kept, in hex.
CREATE TABLE keys (
  id         INTEGER PRIMARY KEY,
  account_id INTEGER NOT NULL REFERENCES accounts (id),
  name       TEXT NOT NULL,
  hash       TEXT NOT NULL UNIQUE,
  disabled   INTEGER NOT NULL DEFAULT 0,
  expires_at INTEGER,
  created_at INTEGER NOT NULL
) STRICT;

-- The processes that create or render runs. A row is a lease.
CREATE TABLE workers (
  id           TEXT PRIMARY KEY,
  host         TEXT NOT NULL,
  pid          INTEGER NOT NULL,
  born_at      INTEGER NOT NULL,
  heartbeat_at INTEGER NOT NULL
) STRICT;

-- owner names a worker, and outlives its row: a run whose owner has no row is an orphan.
CREATE TABLE runs (
  sequence      INTEGER PRIMARY KEY AUTOINCREMENT,
  id            TEXT NOT NULL UNIQUE,
  account_id    INTEGER NOT NULL REFERENCES accounts (id),
  key_id        INTEGER REFERENCES keys (id),
  model         TEXT NOT NULL,
  kind          TEXT NOT NULL,
  input         TEXT NOT NULL,
  status        TEXT NOT NULL CHECK (status IN ('queued', 'processing', 'succeeded', 'failed')),
  owner         TEXT NOT NULL,
  attempts      INTEGER NOT NULL DEFAULT 0,
  error_code    TEXT,
  error_message TEXT,
  created_at    INTEGER NOT NULL,
  started_at    INTEGER,
  finished_at   INTEGER
) STRICT;

CREATE INDEX runs_waiting ON runs (sequence) WHERE status = 'queued';
CREATE INDEX runs_rendering ON runs (owner) WHERE status = 'processing';

CREATE TABLE outputs (
  run_id       TEXT NOT NULL REFERENCES runs (id),
  position     INTEGER NOT NULL,
  token        TEXT NOT NULL,
  name         TEXT NOT NULL,
  content_type TEXT NOT NULL,
  bytes        INTEGER NOT NULL,
  sha256       TEXT NOT NULL,
  PRIMARY KEY (run_id, position),
  UNIQUE (token, name)
) STRICT;
`

/** Adds credits. Earlier runs were free. */
const CREDITS = `
-- No balance grows beyond what a double holds exactly.
ALTER TABLE accounts ADD COLUMN balance INTEGER NOT NULL DEFAULT 0
  CHECK (balance BETWEEN 0 AND 9007199254740991);
ALTER TABLE accounts ADD COLUMN banned INTEGER NOT NULL DEFAULT 0;
-- The number of the turn in which one of its runs was last taken from the queue.
ALTER TABLE accounts ADD COLUMN served INTEGER NOT NULL DEFAULT 0;

ALTER TABLE keys ADD COLUMN spend_limit INTEGER;
ALTER TABLE keys ADD COLUMN spent INTEGER NOT NULL DEFAULT 0 CHECK (spent >= 0);
ALTER TABLE keys ADD COLUMN quota INTEGER;
ALTER TABLE keys ADD COLUMN used INTEGER NOT NULL DEFAULT 0;
-- A list in JSON; null: from anywhere.
ALTER TABLE keys ADD COLUMN allowed_ips TEXT;

ALTER TABLE runs ADD COLUMN price INTEGER NOT NULL DEFAULT 0;
CREATE INDEX runs_of_key ON runs (key_id) WHERE key_id IS NOT NULL;

CREATE TABLE credits (
  sequence   INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES accounts (id),
  kind       TEXT NOT NULL CHECK (kind IN ('added', 'charge', 'refund')),
  amount     INTEGER NOT NULL CHECK (amount <> 0),
  run_id     TEXT REFERENCES runs (id),
  key_id     INTEGER REFERENCES keys (id),
  created_at INTEGER NOT NULL,
  CHECK ((kind = 'added') = (run_id IS NULL))
) STRICT;

-- A run is charged once, and its charge is given back once.
CREATE UNIQUE INDEX credits_of_run ON credits (run_id, kind) WHERE run_id IS NOT NULL;
CREATE INDEX credits_of_account ON credits (account_id, sequence);

CREATE TRIGGER credits_stay BEFORE UPDATE ON credits
BEGIN SELECT RAISE(ABORT, 'the ledger of credits is only ever added to'); END;
CREATE TRIGGER credits_remain BEFORE DELETE ON credits
BEGIN SELECT RAISE(ABORT, 'the ledger of credits is only ever added to'); END;

INSERT INTO credits (account_id, kind, amount, created_at)
SELECT id, 'added', 10000, created_at FROM accounts WHERE name = 'default';
UPDATE accounts SET balance = 10000 WHERE name = 'default';
UPDATE keys SET used = (SELECT count(*) FROM runs WHERE runs.key_id = keys.id);
`

/** Finds the oldest queued run of each account and owner without a scan. */
const QUEUE = `
DROP INDEX runs_waiting;
CREATE INDEX runs_queue ON runs (account_id, owner, sequence) WHERE status = 'queued';
`

/**
 * From this version, a queued run has no owner, and the owner of a processing run is a worker with a lease. A key can
 * have a separate rate limit.
 */
const CLAIMS = `
UPDATE runs SET status = 'queued', started_at = NULL
WHERE status = 'processing' AND owner NOT IN (SELECT id FROM workers);
UPDATE runs SET owner = '' WHERE status = 'queued';
DROP INDEX runs_queue;
-- With the kind, so that the queued runs of each kind are counted in the index alone.
CREATE INDEX runs_queue ON runs (account_id, sequence, kind) WHERE status = 'queued';

ALTER TABLE keys ADD COLUMN rate_requests INTEGER;
ALTER TABLE keys ADD COLUMN rate_window_ms INTEGER;
`

/** Adds the console's users, and indexes for the console's lists. Keys can be rotated, and record their last use. */
const CONSOLE = `
ALTER TABLE keys ADD COLUMN prefix TEXT;
ALTER TABLE keys ADD COLUMN last_used_at INTEGER;
-- The secret before the last rotation, and until when it works.
ALTER TABLE keys ADD COLUMN old_hash TEXT;
ALTER TABLE keys ADD COLUMN old_until INTEGER;
CREATE INDEX keys_of_account ON keys (account_id);
CREATE INDEX keys_rotated ON keys (old_hash) WHERE old_hash IS NOT NULL;

-- An id is never given again: a request of a removed user must not change another one.
CREATE TABLE users (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  email        TEXT NOT NULL UNIQUE,
  account_id   INTEGER NOT NULL REFERENCES accounts (id),
  password     TEXT,
  last_seen_at INTEGER,
  created_at   INTEGER NOT NULL
) STRICT;

-- Of the tokens of sessions, links and logins only the SHA-256 is kept, in hex.
CREATE TABLE sessions (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  hash       TEXT NOT NULL UNIQUE,
  user_id    INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  from_link  INTEGER NOT NULL,
  address    TEXT,
  user_agent TEXT,
  created_at INTEGER NOT NULL,
  used_at    INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_of_user ON sessions (user_id);
CREATE INDEX sessions_expiring ON sessions (expires_at);

CREATE TABLE links (
  hash       TEXT PRIMARY KEY,
  user_id    INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX links_of_user ON links (user_id);

CREATE TABLE logins (
  hash       TEXT PRIMARY KEY,
  user_id    INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  challenge  TEXT NOT NULL,
  name       TEXT NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX logins_of_user ON logins (user_id);

-- Starts of a run that ended before its render did. The last start is in the run itself.
CREATE TABLE lost_attempts (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id     TEXT NOT NULL REFERENCES runs (id),
  started_at INTEGER NOT NULL,
  ended_at   INTEGER NOT NULL,
  result     TEXT NOT NULL CHECK (result IN ('crashed', 'returned'))
) STRICT;
CREATE INDEX lost_attempts_of_run ON lost_attempts (run_id);

-- With all that a list can be filtered by, so that the rows which it skips are not read. It is read in place of runs_of_key too.
CREATE INDEX runs_of_account ON runs (account_id, sequence, status, kind, model, key_id);
DROP INDEX runs_of_key;
DROP INDEX credits_of_account;
CREATE INDEX credits_of_account ON credits (account_id, sequence, kind, key_id, created_at);
CREATE INDEX credits_spent ON credits (account_id, created_at, amount) WHERE kind <> 'added';
`

/**
 * Workers record the models that they render, and claim only runs of these. The index `runs_queue` stays: a process of
 * the version before, which continues beside a newer one, claims by it.
 */
const MODELS = `
ALTER TABLE workers ADD COLUMN models TEXT NOT NULL DEFAULT '[]';
-- With the kind, so that the queued runs of each model are counted in the index alone.
CREATE INDEX runs_of_model ON runs (model, account_id, sequence, kind) WHERE status = 'queued';
`

/** See the migration of PostgreSQL. */
const ARCHIVED_KEYS = `
ALTER TABLE keys ADD COLUMN archived_at INTEGER CHECK (archived_at IS NULL OR disabled = 1);
CREATE INDEX keys_listed ON keys (account_id, id) WHERE archived_at IS NULL;
`

const UPGRADES = [CREDITS, QUEUE, CLAIMS, CONSOLE, FILES, MODELS, ARCHIVED_KEYS]
export const SQLITE_MIGRATIONS: readonly string[] = [FIRST, ...UPGRADES]
