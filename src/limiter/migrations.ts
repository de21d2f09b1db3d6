/** The ledger's file, version by version. A script never changes once it was released. */

export const LEDGER_MIGRATIONS: readonly string[] = [
  `
  -- Times are milliseconds of the machine's own clock since it was started.
  CREATE TABLE places (
    place INTEGER PRIMARY KEY,
    -- A hash of the service's origin and the key.
    budget TEXT NOT NULL,
    pid INTEGER NOT NULL,
    started_at TEXT,
    granted_at REAL NOT NULL,
    -- NULL while the request is on its way.
    settled_at REAL
  ) STRICT;
  CREATE INDEX places_of_budget ON places (budget);

  -- At most one row a process and purpose: the head of its own queue. So processes take turns.
  CREATE TABLE waiters (
    ticket INTEGER PRIMARY KEY AUTOINCREMENT,
    budget TEXT NOT NULL,
    owner TEXT NOT NULL,
    -- 0 for a create, 1 for a look: in the order in which they are served.
    rank INTEGER NOT NULL,
    -- When the process means to ask again.
    due_at REAL NOT NULL,
    UNIQUE (budget, owner, rank)
  ) STRICT;

  CREATE TABLE budgets (
    budget TEXT PRIMARY KEY,
    held_back_until REAL NOT NULL
  ) STRICT;
  `,
]
