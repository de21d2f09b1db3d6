/**
 * Tables and statements of a shared ledger. Each function runs one statement, or a few statements inside a transaction
 * of the caller. Times are monotonic milliseconds.
 */
import type { OpenDatabase } from '../host/database.js'
import { ownerOf, ownerText, type RunningTest } from '../host/process-lock.js'
import { RUNS_LIMIT } from '../protocol/limits.js'
import type { Purpose } from './limit-ledger.js'

/** A released script never changes. */
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

const RANK: Readonly<Record<Purpose, number>> = { create: 0, status: 1 }
/** A waiter that is this late is skipped. */
const LATE_MS = 1_000
/** A waiter that is this late is removed. */
const GONE_MS = 60_000
/** Longest possible time of a request. After this time its slot is freed, even if the process seems to be alive. */
const MAX_REQUEST_MS = 3_600_000
/** Maximum time of `holdBack`. A later end was stored before a reboot of the machine. */
export const MAX_HOLD_MS = 61_000
/** Value of `budget` in a row that applies to every key. */
export const EVERY_BUDGET = ''

export const holdBack = (db: OpenDatabase, keyHash: string, ms: number, nowMs: number) =>
  db.run(
    `INSERT INTO budgets (budget, held_back_until) VALUES (?, ?)
     ON CONFLICT (budget) DO UPDATE SET held_back_until = max(
       excluded.held_back_until,
       CASE WHEN held_back_until > ? THEN 0 ELSE held_back_until END)`,
    keyHash,
    nowMs + ms,
    nowMs + MAX_HOLD_MS,
  )

export const settle = (db: OpenDatabase, slot: number, nowMs: number) =>
  db.run('UPDATE places SET settled_at = ? WHERE place = ? AND settled_at IS NULL', nowMs, slot)

/** Removes slots that no longer count, and replaces times from before a reboot by the current time. */
export function removeExpired(db: OpenDatabase, keyHash: string, nowMs: number): void {
  const { windowMs } = RUNS_LIMIT
  db.run(
    `UPDATE places SET granted_at = min(granted_at, ?1), settled_at = min(settled_at, ?1)
     WHERE budget = ?2 AND (granted_at > ?1 OR settled_at > ?1)`,
    nowMs,
    keyHash,
  )
  db.run(
    'DELETE FROM places WHERE budget = ? AND (settled_at <= ? OR granted_at <= ?)',
    keyHash,
    nowMs - windowMs,
    nowMs - MAX_REQUEST_MS,
  )
  db.run(
    'DELETE FROM waiters WHERE budget = ? AND (due_at < ? OR due_at > ?)',
    keyHash,
    nowMs - GONE_MS,
    nowMs + windowMs + LATE_MS,
  )
}

/**
 * Tables and columns keep their names from earlier versions: a slot is a `place`, and the hash of the key is a
 * `budget`.
 */
interface SlotRow {
  readonly slot: number
  /** Id of the lock of its process; undefined in rows of earlier versions. */
  readonly holder: string | undefined
  readonly grantedAtMs: number
  settledAtMs: number | undefined
}

export const slotsOf = (db: OpenDatabase, keyHash: string): readonly SlotRow[] =>
  db
    .all('SELECT place, started_at, granted_at, settled_at FROM places WHERE budget = ?', keyHash)
    .map(({ place, started_at, granted_at, settled_at }) => ({
      slot: Number(place),
      holder: ownerOf(started_at),
      grantedAtMs: Number(granted_at),
      settledAtMs: typeof settled_at === 'number' ? settled_at : undefined,
    }))

export const countUsed = (db: OpenDatabase, keyHash: string, settledAfterMs: number): number =>
  Number(
    db.get(
      'SELECT count(*) AS used FROM places WHERE budget = ? AND (settled_at IS NULL OR settled_at > ?)',
      keyHash,
      settledAfterMs,
    )?.used,
  )

export const heldBackUntil = (db: OpenDatabase, keyHash: string): number =>
  Number(
    db.get('SELECT max(held_back_until) AS until FROM budgets WHERE budget IN (?, ?)', keyHash, EVERY_BUDGET)
      ?.until ?? 0,
  )

interface WaiterKey {
  readonly keyHash: string
  readonly owner: string
  readonly purpose: Purpose
}

/** Counts the waiters of other processes that are served before this one. */
export const countAhead = (
  db: OpenDatabase,
  { keyHash, owner, purpose, nowMs }: WaiterKey & { readonly nowMs: number },
): number =>
  Number(
    db.get(
      `SELECT count(*) AS ahead FROM waiters
       WHERE budget = ?1 AND owner <> ?2 AND due_at >= ?4 AND (rank < ?3 OR (rank = ?3 AND ticket < coalesce(
         (SELECT ticket FROM waiters WHERE budget = ?1 AND owner = ?2 AND rank = ?3), 9223372036854775807)))`,
      keyHash,
      owner,
      RANK[purpose],
      nowMs - LATE_MS,
    )?.ahead,
  )

export function saveWaiter(
  db: OpenDatabase,
  { keyHash, owner, purpose, dueAtMs }: WaiterKey & { readonly dueAtMs: number },
): void {
  db.run(
    `INSERT INTO waiters (budget, owner, rank, due_at) VALUES (?, ?, ?, ?)
     ON CONFLICT (budget, owner, rank) DO UPDATE SET due_at = excluded.due_at`,
    keyHash,
    owner,
    RANK[purpose],
    dueAtMs,
  )
}

export function removeWaiter(db: OpenDatabase, { keyHash, owner, purpose }: WaiterKey): void {
  db.run('DELETE FROM waiters WHERE budget = ? AND owner = ? AND rank = ?', keyHash, owner, RANK[purpose])
}

export const grant = (db: OpenDatabase, keyHash: string, holder: string, nowMs: number): number =>
  Number(
    db.get(
      'INSERT INTO places (budget, pid, started_at, granted_at) VALUES (?, ?, ?, ?) RETURNING place',
      keyHash,
      process.pid,
      ownerText(holder),
      nowMs,
    )?.place,
  )

/**
 * Settles the slots of dead processes, which can no longer do it. Their requests may have been sent, so the slots count
 * for one window from now.
 */
export function settleForDeadProcesses(
  db: OpenDatabase,
  slots: readonly SlotRow[],
  isRunning: RunningTest,
  nowMs: number,
): void {
  for (const { slot, holder, grantedAtMs, settledAtMs } of slots)
    if (settledAtMs === undefined && !isRunning(holder, nowMs - grantedAtMs)) settle(db, slot, nowMs)
}
