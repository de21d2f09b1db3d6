/** Format 1 of `service.db`. */
export const SQLITE_SCHEMA = `
CREATE TABLE accounts (
  id         INTEGER PRIMARY KEY,
  name       TEXT NOT NULL UNIQUE,
  -- No balance grows beyond what a double holds exactly.
  balance    INTEGER NOT NULL DEFAULT 0 CHECK (balance BETWEEN 0 AND 9007199254740991),
  banned     INTEGER NOT NULL DEFAULT 0,
  -- The number of the turn in which one of its runs was last taken from the queue.
  served     INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL
) STRICT;

-- Only the SHA-256 of a key is kept, in hex. Archived keys stay disabled.
CREATE TABLE keys (
  id             INTEGER PRIMARY KEY,
  account_id     INTEGER NOT NULL REFERENCES accounts (id),
  name           TEXT NOT NULL,
  hash           TEXT NOT NULL UNIQUE,
  disabled       INTEGER NOT NULL DEFAULT 0,
  expires_at     INTEGER,
  spend_limit    INTEGER,
  spent          INTEGER NOT NULL DEFAULT 0 CHECK (spent >= 0),
  quota          INTEGER,
  used           INTEGER NOT NULL DEFAULT 0,
  -- A list in JSON; null: from anywhere.
  allowed_ips    TEXT,
  rate_requests  INTEGER,
  rate_window_ms INTEGER,
  created_at     INTEGER NOT NULL,
  prefix         TEXT,
  last_used_at   INTEGER,
  -- The secret before the last rotation, and until when it works.
  old_hash       TEXT,
  old_until      INTEGER,
  archived_at    INTEGER CHECK (archived_at IS NULL OR disabled = 1)
) STRICT;
CREATE INDEX keys_of_account ON keys (account_id);
CREATE INDEX keys_rotated ON keys (old_hash) WHERE old_hash IS NOT NULL;
-- An account has few of them, and may have had many.
CREATE INDEX keys_active ON keys (account_id) WHERE disabled = 0;
CREATE INDEX keys_listed ON keys (account_id, id) WHERE archived_at IS NULL;

-- The processes that create or render runs, with the models that they render. A row is a lease.
CREATE TABLE workers (
  id           TEXT PRIMARY KEY,
  models       TEXT NOT NULL,
  heartbeat_at INTEGER NOT NULL
) STRICT;

CREATE TABLE runs (
  sequence      INTEGER PRIMARY KEY AUTOINCREMENT,
  id            TEXT NOT NULL UNIQUE,
  account_id    INTEGER NOT NULL REFERENCES accounts (id),
  key_id        INTEGER REFERENCES keys (id),
  model         TEXT NOT NULL,
  kind          TEXT NOT NULL,
  -- The first 1,000 characters.
  prompt        TEXT,
  aspect_ratio  TEXT,
  price         INTEGER NOT NULL,
  status        TEXT NOT NULL CHECK (status IN ('queued', 'processing', 'succeeded', 'failed')),
  -- The worker that renders the run, or rendered it last. Empty while the run is queued.
  owner         TEXT NOT NULL DEFAULT '',
  attempts      INTEGER NOT NULL DEFAULT 0,
  -- JSON.
  failure       TEXT,
  created_at    INTEGER NOT NULL,
  started_at    INTEGER,
  finished_at   INTEGER,
  -- JSON of up to 0.8 MB. The last column, because SQLite reads a row up to the column that it needs.
  input         TEXT NOT NULL
) STRICT;
CREATE INDEX runs_rendering ON runs (owner) WHERE status = 'processing';
-- With the kind, so that the queued runs of each kind, and of each model, are counted in an index alone.
CREATE INDEX runs_queue ON runs (account_id, sequence, kind) WHERE status = 'queued';
CREATE INDEX runs_of_model ON runs (model, account_id, sequence, kind) WHERE status = 'queued';
-- With all that a list can be filtered by, so that the rows which it skips are not read.
CREATE INDEX runs_of_account ON runs (account_id, sequence, status, kind, model, key_id);

-- Starts of a run that ended before its render did. The last start is in the run itself.
CREATE TABLE lost_attempts (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id     TEXT NOT NULL REFERENCES runs (id),
  started_at INTEGER NOT NULL,
  ended_at   INTEGER NOT NULL,
  result     TEXT NOT NULL CHECK (result IN ('crashed', 'returned'))
) STRICT;
CREATE INDEX lost_attempts_of_run ON lost_attempts (run_id);

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
CREATE INDEX credits_of_account ON credits (account_id, sequence, kind, key_id, created_at);
CREATE INDEX credits_spent ON credits (account_id, created_at, amount) WHERE kind <> 'added';
CREATE TRIGGER credits_stay BEFORE UPDATE ON credits
BEGIN SELECT RAISE(ABORT, 'the ledger of credits is only ever added to'); END;
CREATE TRIGGER credits_remain BEFORE DELETE ON credits
BEGIN SELECT RAISE(ABORT, 'the ledger of credits is only ever added to'); END;

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
CREATE TRIGGER outputs_stored AFTER INSERT ON outputs BEGIN
  INSERT INTO files (kind, key, sha256, bytes, state, run_id, owner, used_at)
  SELECT 'output', NEW.token || '/' || NEW.name, NEW.sha256, NEW.bytes, 'stored', id, owner, coalesce(finished_at, created_at)
  FROM runs WHERE id = NEW.run_id
  ON CONFLICT (kind, key) DO UPDATE SET state = 'stored', used_at = excluded.used_at;
END;
`
