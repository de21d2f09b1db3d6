/** The formats of the service's database. A script never changes; a new format appends one. */

export const FORMAT = 5

/** What SQLite and PostgreSQL write differently. */
interface SchemaTypes {
  /** Type of a number that the database gives to each row, and never again. */
  readonly sequence: string
  readonly integer: string
  readonly boolean: string
  /** Expression for a random text. */
  readonly randomId: string
  /** Options of a table. */
  readonly options: string
  /** Options of a table whose rows change often. */
  readonly changing: string
  /** Triggers that refuse to change the ledger, and tables of this database only. */
  readonly more: string
}

/** One script for each format, to be run one after the other. */
export const scriptsOf = (types: SchemaTypes): readonly string[] => [
  format1(types),
  FORMAT_2,
  format3(types),
  FORMAT_4,
  FORMAT_5,
]

const FORMAT_2 = `
DROP TABLE key_log;
DROP INDEX keys_of_user;
DROP INDEX keys_listed;
ALTER TABLE keys DROP COLUMN archived_at;
ALTER TABLE keys DROP COLUMN user_id;
ALTER TABLE users DROP COLUMN role;
UPDATE format SET version = 2;
`

const FORMAT_4 = `
-- The models of runs, as they were when the runs were accepted, by the SHA-256 of their JSON.
CREATE TABLE documents (
  hash     text NOT NULL PRIMARY KEY,
  document text NOT NULL
);
-- Null for a run of an earlier version, which has the model that the service has under its name.
ALTER TABLE runs ADD COLUMN document text;
UPDATE format SET version = 4;
`

const FORMAT_5 = `
ALTER TABLE users DROP COLUMN last_seen_at;
UPDATE format SET version = 5;
`

/** Before it, files were stored under other names: those of earlier runs are no longer found. */
const format3 = ({ integer }: SchemaTypes): string => `
DROP TABLE IF EXISTS run_files;
DROP TABLE IF EXISTS files;
DROP TABLE IF EXISTS workers;
DROP TABLE IF EXISTS turns;
DROP INDEX IF EXISTS runs_rendering;
DROP INDEX IF EXISTS runs_queued;
-- Leases that ran out, and renders that crashed.
ALTER TABLE runs RENAME COLUMN attempts TO crashes;
-- Its place in the queue of its model: behind the last queued run of its account, else level with the head.
ALTER TABLE runs ADD COLUMN turn ${integer} NOT NULL DEFAULT 0;
-- The lease: beside the worker that renders the run (owner), the number of its claim, and the end by the clock of the database.
-- A worker that claims its own lost run is another owner.
ALTER TABLE runs ADD COLUMN attempt ${integer} NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN lease_until ${integer} NOT NULL DEFAULT 0;
-- Its files: kept, being removed, or removed.
ALTER TABLE runs ADD COLUMN files text NOT NULL DEFAULT 'kept' CHECK (files IN ('kept', 'removing', 'removed'));
UPDATE runs SET files = 'removed' WHERE finished_at IS NOT NULL;
-- lease_until is in no index, so that a renewal stays inside its page.
CREATE INDEX runs_leased ON runs (owner) WHERE status = 'processing';
CREATE INDEX runs_turn ON runs (model, turn, sequence) WHERE status = 'queued';
CREATE INDEX runs_with_files ON runs (finished_at) WHERE finished_at IS NOT NULL AND files <> 'removed';
CREATE INDEX runs_queued ON runs (model, account_id, turn, kind) WHERE status = 'queued';
UPDATE format SET version = 3;
`

const format1 = ({ sequence, integer, boolean, randomId, options, changing, more }: SchemaTypes): string => `
-- One row. checked_at changes when a node checks whether the database can be written. A folder or bucket of files has
-- database_id, so that no other database removes its files.
CREATE TABLE format (
  version     ${integer} NOT NULL,
  checked_at  ${integer} NOT NULL DEFAULT 0,
  database_id text NOT NULL
)${options};
INSERT INTO format (version, database_id) VALUES (1, ${randomId});

CREATE TABLE accounts (
  id         ${sequence},
  name       text NOT NULL UNIQUE,
  -- No balance grows beyond what a double holds exactly.
  balance    ${integer} NOT NULL DEFAULT 0 CHECK (balance BETWEEN 0 AND 9007199254740991),
  banned     ${boolean} NOT NULL DEFAULT false,
  created_at ${integer} NOT NULL
)${changing};

-- Only the SHA-256 of a key is kept, in hex. Archived keys stay disabled.
CREATE TABLE keys (
  id             ${sequence},
  account_id     ${integer} NOT NULL REFERENCES accounts (id),
  name           text NOT NULL,
  hash           text NOT NULL UNIQUE,
  disabled       ${boolean} NOT NULL DEFAULT false,
  expires_at     ${integer},
  spend_limit    ${integer},
  spent          ${integer} NOT NULL DEFAULT 0 CHECK (spent >= 0),
  quota          ${integer},
  used           ${integer} NOT NULL DEFAULT 0,
  -- A list in JSON; null: from anywhere.
  allowed_ips    text,
  rate_requests  ${integer},
  rate_window_ms ${integer},
  created_at     ${integer} NOT NULL,
  prefix         text,
  last_used_at   ${integer},
  archived_at    ${integer} CHECK (archived_at IS NULL OR disabled),
  -- The user who created the key; null for an administrator. Stays when the user is removed.
  user_id        ${integer}
)${changing};
CREATE INDEX keys_of_account ON keys (account_id, id);
CREATE INDEX keys_of_user ON keys (user_id, id) WHERE user_id IS NOT NULL;
-- An account has few of them, and may have had many.
CREATE INDEX keys_active ON keys (account_id) WHERE NOT disabled;
CREATE INDEX keys_listed ON keys (account_id, id) WHERE archived_at IS NULL;

-- Who created, changed and archived keys. The newest entries of each account are kept.
CREATE TABLE key_log (
  id         ${sequence},
  account_id ${integer} NOT NULL REFERENCES accounts (id),
  key_id     ${integer} NOT NULL REFERENCES keys (id),
  -- At that time: names of keys change.
  key_name   text NOT NULL,
  action     text NOT NULL CHECK (action IN ('created', 'changed', 'disabled', 'enabled', 'archived')),
  -- Names of the changed fields, separated by spaces.
  fields     text NOT NULL,
  -- Email of a user, or \`admin\`.
  actor      text NOT NULL,
  created_at ${integer} NOT NULL
)${options};
CREATE INDEX key_log_of_account ON key_log (account_id, id);

-- input and failure are JSON in text: PostgreSQL's JSON types refuse \\u0000 and half surrogate pairs.
CREATE TABLE runs (
  sequence        ${sequence},
  id              text NOT NULL UNIQUE,
  account_id      ${integer} NOT NULL REFERENCES accounts (id),
  key_id          ${integer} REFERENCES keys (id),
  model           text NOT NULL,
  kind            text NOT NULL,
  -- The first 1,000 characters.
  prompt          text,
  aspect_ratio    text,
  price           ${integer} NOT NULL,
  status          text NOT NULL CHECK (status IN ('queued', 'processing', 'succeeded', 'failed', 'canceled')),
  -- The worker that renders the run. Empty while the run is queued.
  owner           text NOT NULL DEFAULT '',
  attempts        ${integer} NOT NULL DEFAULT 0,
  -- Canceled while it was rendered: a worker still has to stop the engine, and to decide on the refund.
  stopping        ${boolean} NOT NULL DEFAULT false,
  failure         text,
  -- The job at the server of the model (JSON). With an intent, a create whose answer has not arrived.
  job             text,
  -- Digest of the id of the job; without an id, of the endpoint of the create (\`jobKeyOf\`).
  job_key         text,
  created_at      ${integer} NOT NULL,
  started_at      ${integer},
  finished_at     ${integer},
  -- Chosen by the client, and the SHA-256 of model and input that it sent with it.
  idempotency_key text,
  request         text,
  -- Up to 0.8 MB. The last column, because SQLite reads a row up to the column that it needs.
  input           text NOT NULL
)${changing};
CREATE INDEX runs_repeatable ON runs (account_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX runs_stopping ON runs (owner) WHERE stopping;
CREATE INDEX runs_of_job ON runs (job_key) WHERE job_key IS NOT NULL;
-- With the kind, so that the queued runs of each kind are counted in the index alone.
-- With all that a list can be filtered by, so that the rows which it skips are not read.
CREATE INDEX runs_of_account ON runs (account_id, sequence, status, kind, model, key_id);

CREATE TABLE outputs (
  run_id       text NOT NULL REFERENCES runs (id),
  position     ${integer} NOT NULL,
  token        text NOT NULL,
  name         text NOT NULL,
  content_type text NOT NULL,
  bytes        ${integer} NOT NULL,
  sha256       text NOT NULL,
  PRIMARY KEY (run_id, position),
  UNIQUE (token, name)
)${options};

CREATE TABLE credits (
  sequence   ${sequence},
  account_id ${integer} NOT NULL REFERENCES accounts (id),
  kind       text NOT NULL CHECK (kind IN ('added', 'charge', 'refund')),
  amount     ${integer} NOT NULL CHECK (amount <> 0),
  run_id     text REFERENCES runs (id),
  key_id     ${integer} REFERENCES keys (id),
  created_at ${integer} NOT NULL,
  CHECK ((kind = 'added') = (run_id IS NULL))
)${options};
-- A run is charged once, and its charge is given back once.
CREATE UNIQUE INDEX credits_of_run ON credits (run_id, kind) WHERE run_id IS NOT NULL;
CREATE INDEX credits_of_account ON credits (account_id, sequence, kind, key_id, created_at);
CREATE INDEX credits_spent ON credits (account_id, created_at, amount) WHERE kind <> 'added';

CREATE TABLE users (
  id           ${sequence},
  email        text NOT NULL UNIQUE,
  account_id   ${integer} NOT NULL REFERENCES accounts (id),
  role         text NOT NULL CHECK (role IN ('owner', 'member')),
  password     text,
  last_seen_at ${integer},
  created_at   ${integer} NOT NULL
)${options};
CREATE INDEX users_of_account ON users (account_id, id);

-- Sessions and sign-in links. Only the SHA-256 is kept, in hex.
CREATE TABLE tokens (
  id         ${sequence},
  kind       text NOT NULL CHECK (kind IN ('session', 'link')),
  hash       text NOT NULL,
  user_id    ${integer} NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  created_at ${integer} NOT NULL,
  used_at    ${integer} NOT NULL,
  expires_at ${integer} NOT NULL,
  -- Of a session.
  from_link  ${boolean} NOT NULL DEFAULT false,
  address    text,
  user_agent text,
  UNIQUE (kind, hash)
)${options};
CREATE INDEX tokens_of_user ON tokens (user_id, kind);
CREATE INDEX tokens_expiring ON tokens (expires_at);
${more}`
