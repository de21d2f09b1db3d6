/**
 * The format of `service.db`. Script n brings the file from version n to n+1. A script that was released never
 * changes; what is to be different comes as a further one.
 */

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

export const MIGRATIONS: readonly string[] = [FIRST]
