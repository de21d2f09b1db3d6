/**
 * The slots of a key in a SQLite file that all processes of the machine share. Nobody waits inside: a call answers at
 * once, and each process decides which of its requests asks next (its creates). The first create of a process may wait
 * one window beside another process that follows many runs.
 *
 * Time is the monotonic clock of the machine, the same for all processes. It restarts with the machine: times in the
 * future are then treated as now, which costs one window at most.
 *
 * A power failure may damage the file, which is acceptable here: synchronous=OFF. A damaged file is replaced when it is
 * opened. Its slots are then unknown, so nothing is granted for one window.
 */
import { createHash } from 'node:crypto'
import { dirname } from 'node:path'
import type { Clock } from '../host/clock.js'
import { type OpenDatabase, openOrQuarantine } from '../host/database.js'
import { isRunning, ProcessLock } from '../host/process-lock.js'
import { RUNS_LIMIT } from '../protocol/limits.js'
import { waitMs } from './window.js'

/** A released script never changes. */
const MIGRATIONS: readonly string[] = [
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
  'DROP TABLE waiters',
]

/** A slot is a `place`, and the hash of the key a `budget`. Longest time of a request; its slot is then free. */
const MAX_REQUEST_MS = 3_600_000
/** Maximum time of `holdBack`. A later end was stored before a reboot of the machine. */
const MAX_HOLD_MS = 61_000
/** The budget of a hold that applies to every key. */
const EVERY_KEY = ''
/** A transaction takes a fraction of a millisecond, so a file that is locked for longer is unusable. */
const BUSY_MS = 2_000
/** An unanswered request of another process gives no time to wait for. */
const ASK_AGAIN_MS = 100

export interface SharedWindowOptions {
  readonly path: string
  /** From `keyHashOf`. */
  readonly keyHash: string
  readonly clock: Clock
}

/** Returns a hash that identifies the rate limit of a key without revealing the key. */
export const keyHashOf = (origin: string, apiKey: string): string =>
  createHash('sha256')
    .update(`${normalizeLoopback(origin)}\n${apiKey}`)
    .digest('hex')
    .slice(0, 32)

/**
 * `localhost` is 127.0.0.1 or ::1: with the same port and key, these names are assumed to be the same service. If they
 * are two services, both share one limit, so requests are slower, but never too fast.
 */
const normalizeLoopback = (origin: string): string =>
  origin.replace(/^(https?:\/\/)(127\.0\.0\.1|\[::1\])(?=:|$)/, '$1localhost')

/** All methods throw the errors of the database. */
export class SharedWindow {
  readonly #options: SharedWindowOptions
  readonly #database: OpenDatabase
  /** Shows other processes that this one runs. */
  readonly #lock: ProcessLock

  constructor(options: SharedWindowOptions) {
    this.#options = options
    this.#lock = new ProcessLock(dirname(options.path))
    let isReplaced = false
    this.#database = openOrQuarantine(
      { path: options.path, migrations: MIGRATIONS, synchronous: 'OFF', busyTimeoutMs: BUSY_MS },
      () => {
        isReplaced = true
      },
    )
    if (isReplaced) this.holdBack(RUNS_LIMIT.windowMs, EVERY_KEY)
  }

  /** Takes a slot and returns its number, or returns how long to wait. `spare`: slots that must stay free after it. */
  take(spare: number): { readonly slot: number } | { readonly retryInMs: number } {
    const { keyHash, clock } = this.#options
    // Read the id before the transaction, because other processes wait for the transaction.
    const holder = this.#lock.id
    const db = this.#database
    return db.transaction(() => {
      // Read the clock under the lock, so that no time in the file is later.
      const nowMs = clock.monotonic()
      this.#removeExpired(nowMs)
      const slots = db
        .all('SELECT place, started_at, settled_at FROM places WHERE budget = ?', keyHash)
        .map(({ place, started_at, settled_at }) => ({
          ...{ place, started_at },
          settledAtMs: typeof settled_at === 'number' ? settled_at : undefined,
        }))
      const heldBack = db.get(
        'SELECT max(held_back_until) AS held_back_until FROM budgets WHERE budget IN (?, ?)',
        ...[keyHash, EVERY_KEY],
      )
      const heldBackMs = Number(heldBack?.held_back_until ?? 0) - nowMs
      const wait = Math.max(
        waitMs(slots, RUNS_LIMIT, nowMs, spare),
        heldBackMs <= MAX_HOLD_MS ? heldBackMs : 0,
      )
      if (wait > 0) {
        // The requests of dead processes may have been sent, so their slots count for one window from now.
        for (const { place, started_at, settledAtMs } of slots)
          if (settledAtMs === undefined && !isRunning(dirname(this.#options.path), started_at))
            this.#settle(Number(place), nowMs)
        return { retryInMs: wait === Number.POSITIVE_INFINITY ? ASK_AGAIN_MS : wait }
      }
      const granted = db.get(
        'INSERT INTO places (budget, pid, started_at, granted_at) VALUES (?, ?, ?, ?) RETURNING place',
        ...[keyHash, process.pid, holder, nowMs],
      )
      return { slot: Number(granted?.place) }
    })
  }

  /** Call it once for each slot. */
  settle(slot: number): void {
    this.#settle(slot, this.#options.clock.monotonic())
  }

  /** Grants nothing for `ms`. */
  holdBack(ms: number, budget = this.#options.keyHash): void {
    const nowMs = this.#options.clock.monotonic()
    this.#database.run(
      `INSERT INTO budgets (budget, held_back_until) VALUES (?, ?)
       ON CONFLICT (budget) DO UPDATE SET held_back_until = max(
         excluded.held_back_until,
         CASE WHEN held_back_until > ? THEN 0 ELSE held_back_until END)`,
      ...[budget, nowMs + ms, nowMs + MAX_HOLD_MS],
    )
  }

  /** Returns the number of slots that count now. */
  used(): number {
    const { keyHash, clock } = this.#options
    const found = this.#database.get(
      'SELECT count(*) AS used FROM places WHERE budget = ? AND (settled_at IS NULL OR settled_at > ?)',
      ...[keyHash, clock.monotonic() - RUNS_LIMIT.windowMs],
    )
    return Number(found?.used)
  }

  close(): void {
    this.#database.close()
    this.#lock.end()
  }

  #settle(slot: number, nowMs: number): void {
    this.#database.run('UPDATE places SET settled_at = ? WHERE place = ? AND settled_at IS NULL', nowMs, slot)
  }

  /** Removes slots that no longer count, and replaces times from before a reboot by the current time. */
  #removeExpired(nowMs: number): void {
    const { keyHash } = this.#options
    this.#database.run(
      `UPDATE places SET granted_at = min(granted_at, ?1), settled_at = min(settled_at, ?1)
       WHERE budget = ?2 AND (granted_at > ?1 OR settled_at > ?1)`,
      ...[nowMs, keyHash],
    )
    this.#database.run(
      'DELETE FROM places WHERE budget = ? AND (settled_at <= ? OR granted_at <= ?)',
      ...[keyHash, nowMs - RUNS_LIMIT.windowMs, nowMs - MAX_REQUEST_MS],
    )
  }
}
