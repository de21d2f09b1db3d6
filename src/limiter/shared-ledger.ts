/**
 * The places of a key in a file that all processes of the machine share: SQLite, one short transaction a question.
 *
 * Order: creates before looks, otherwise as they came. A process shows only the head of its own queue, so one with
 * two hundred runs takes turns with one that has a single run. Nobody polls: a place that is free at no known time
 * cannot be free before one window from now, so every waiter knows a time before which asking is useless, sleeps until
 * then, and is never late. A waiter that does not come when it meant to (killed, stopped by Ctrl-Z, asleep) is passed over.
 *
 * Time is the machine's own clock, the same for all its processes and untouched by steps of the wall clock. After a
 * restart it begins anew: instants that seem to lie ahead are taken for now, which costs one window at most.
 *
 * Nothing in the file is worth anything after a power failure, so the disk is never waited for.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { Clock } from '../host/clock.js'
import { openOrSetAside } from '../host/corruption.js'
import type { OpenDatabase } from '../host/database.js'
import { isAlive, ownMark } from '../host/processes.js'
import type { Ledger, Purpose } from './limit-ledger.js'
import { LEDGER_MIGRATIONS } from './migrations.js'
import { type Limit, waitMs } from './window.js'

export interface SharedLedger extends Ledger {
  close(): void
}

export interface SharedLedgerOptions {
  readonly path: string
  /** Who the limit is counted for: see `budgetOf`. */
  readonly budget: string
  readonly limit: Limit
  readonly clock: Pick<Clock, 'monotonic'>
}

/** Names a key's budget without telling the key. */
export const budgetOf = (origin: string, apiKey: string): string =>
  createHash('sha256').update(`${origin}\n${apiKey}`).digest('hex').slice(0, 32)

const RANK: Readonly<Record<Purpose, number>> = { create: 0, status: 1 }
/** A waiter that is late by more than this is not waited for. */
const LATE_MS = 1_000
/** A waiter that is late by more than this has gone for good. */
const GONE_MS = 60_000
/** No request is under way for longer: one whose owner seems to live is given up. */
const LONGEST_REQUEST_MS = 3_600_000
/** The longest wait that anybody asks for; a later end is of another life of the machine. */
const LONGEST_HOLD_MS = 61_000
/** A neighbour's transaction takes a fraction of a millisecond; a file locked for longer is of no use. */
const BUSY_MS = 2_000

/** Throws what `openDatabase` throws. Every other call throws the database's errors. */
export function openSharedLedger({ path, budget, limit, clock }: SharedLedgerOptions): SharedLedger {
  const open = (): OpenDatabase =>
    openOrSetAside(
      { path, migrations: LEDGER_MIGRATIONS, synchronous: 'OFF', busyTimeoutMs: BUSY_MS },
      // Nothing in it is missed.
      () => {},
    )
  const owner = `${process.pid}-${randomBytes(6).toString('hex')}`
  const self = ownMark()
  let opened = open()
  let hasTaken = false

  /** The file that the neighbours use: it may have been removed, or damaged and set aside, and begun anew. */
  function shared(): OpenDatabase {
    if (opened.isCurrent()) return opened
    opened.close()
    opened = open()
    // What was granted there still counts, and is written nowhere any more.
    if (hasTaken) holdBack(opened, budget, limit.windowMs, clock.monotonic())
    return opened
  }

  return {
    take(purpose) {
      const db = shared()
      return db.transaction(() => {
        // Read under the lock: whatever is in the file was written earlier.
        const nowMs = clock.monotonic()
        tidy(db, budget, limit, nowMs)
        const places = placesOf(db, budget)
        const ahead = countAhead(db, { budget, owner, purpose, nowMs })
        const held = heldBackUntil(db, budget) - nowMs
        const wait = Math.max(waitMs(places, limit, nowMs, ahead), held <= LONGEST_HOLD_MS ? held : 0)
        if (wait > 0) {
          buryTheDead(db, places, nowMs)
          const againInMs = Math.min(wait, limit.windowMs)
          keepTurn(db, { budget, owner, purpose, dueAtMs: nowMs + againInMs })
          return { againInMs }
        }
        giveUpTurn(db, { budget, owner, purpose })
        const place = grant(db, { budget, ...self, nowMs })
        hasTaken = true
        return {
          settle() {
            // In a file that was begun anew the number is somebody else's.
            if (shared() === db) settle(db, place, clock.monotonic())
          },
        }
      })
    },
    withdraw: (purpose) => giveUpTurn(shared(), { budget, owner, purpose }),
    holdBack: (ms) => void holdBack(shared(), budget, ms, clock.monotonic()),
    held: () => countHeld(shared(), budget, clock.monotonic() - limit.windowMs),
    close: () => opened.close(),
  }
}

const holdBack = (db: OpenDatabase, budget: string, ms: number, nowMs: number) =>
  db.run(
    `INSERT INTO budgets (budget, held_back_until) VALUES (?, ?)
     ON CONFLICT (budget) DO UPDATE SET held_back_until = max(
       excluded.held_back_until,
       CASE WHEN held_back_until > ? THEN 0 ELSE held_back_until END)`,
    budget,
    nowMs + ms,
    nowMs + LONGEST_HOLD_MS,
  )

const settle = (db: OpenDatabase, place: number, nowMs: number) =>
  db.run('UPDATE places SET settled_at = ? WHERE place = ? AND settled_at IS NULL', nowMs, place)

/** Forgets what no longer counts, and mends what another life of the machine has left. */
function tidy(db: OpenDatabase, budget: string, { windowMs }: Limit, nowMs: number): void {
  db.run(
    `UPDATE places SET granted_at = min(granted_at, ?1), settled_at = min(settled_at, ?1)
     WHERE budget = ?2 AND (granted_at > ?1 OR settled_at > ?1)`,
    nowMs,
    budget,
  )
  db.run(
    'DELETE FROM places WHERE budget = ? AND (settled_at <= ? OR granted_at <= ?)',
    budget,
    nowMs - windowMs,
    nowMs - LONGEST_REQUEST_MS,
  )
  db.run(
    'DELETE FROM waiters WHERE budget = ? AND (due_at < ? OR due_at > ?)',
    budget,
    nowMs - GONE_MS,
    nowMs + windowMs + LATE_MS,
  )
}

interface PlaceRow {
  readonly place: number
  readonly pid: number
  readonly startedAt: string | undefined
  settledAtMs: number | undefined
}

const placesOf = (db: OpenDatabase, budget: string): readonly PlaceRow[] =>
  db
    .all('SELECT place, pid, started_at, settled_at FROM places WHERE budget = ?', budget)
    .map(({ place, pid, started_at, settled_at }) => ({
      place: Number(place),
      pid: Number(pid),
      startedAt: typeof started_at === 'string' ? started_at : undefined,
      settledAtMs: typeof settled_at === 'number' ? settled_at : undefined,
    }))

const countHeld = (db: OpenDatabase, budget: string, settledAfterMs: number): number =>
  Number(
    db.get(
      'SELECT count(*) AS held FROM places WHERE budget = ? AND (settled_at IS NULL OR settled_at > ?)',
      budget,
      settledAfterMs,
    )?.held,
  )

const heldBackUntil = (db: OpenDatabase, budget: string): number =>
  Number(db.get('SELECT held_back_until FROM budgets WHERE budget = ?', budget)?.held_back_until ?? 0)

interface Turn {
  readonly budget: string
  readonly owner: string
  readonly purpose: Purpose
}

/** Waiters of other processes whose turn is before ours: its own order a process keeps itself. */
const countAhead = (
  db: OpenDatabase,
  { budget, owner, purpose, nowMs }: Turn & { readonly nowMs: number },
): number =>
  Number(
    db.get(
      `SELECT count(*) AS ahead FROM waiters
       WHERE budget = ?1 AND owner <> ?2 AND due_at >= ?4 AND (rank < ?3 OR (rank = ?3 AND ticket < coalesce(
         (SELECT ticket FROM waiters WHERE budget = ?1 AND owner = ?2 AND rank = ?3), 9223372036854775807)))`,
      budget,
      owner,
      RANK[purpose],
      nowMs - LATE_MS,
    )?.ahead,
  )

function keepTurn(
  db: OpenDatabase,
  { budget, owner, purpose, dueAtMs }: Turn & { readonly dueAtMs: number },
): void {
  db.run(
    `INSERT INTO waiters (budget, owner, rank, due_at) VALUES (?, ?, ?, ?)
     ON CONFLICT (budget, owner, rank) DO UPDATE SET due_at = excluded.due_at`,
    budget,
    owner,
    RANK[purpose],
    dueAtMs,
  )
}

function giveUpTurn(db: OpenDatabase, { budget, owner, purpose }: Turn): void {
  db.run('DELETE FROM waiters WHERE budget = ? AND owner = ? AND rank = ?', budget, owner, RANK[purpose])
}

interface Grant {
  readonly budget: string
  readonly pid: number
  readonly startedAt: string | undefined
  readonly nowMs: number
}

const grant = (db: OpenDatabase, { budget, pid, startedAt, nowMs }: Grant): number =>
  Number(
    db.get(
      'INSERT INTO places (budget, pid, started_at, granted_at) VALUES (?, ?, ?, ?) RETURNING place',
      budget,
      pid,
      startedAt ?? null,
      nowMs,
    )?.place,
  )

/**
 * A process that died with a request on its way will not say when it was answered. Its bytes may have left, so its
 * place counts for one window from the moment at which the death is seen.
 */
function buryTheDead(db: OpenDatabase, places: readonly PlaceRow[], nowMs: number): void {
  for (const { place, pid, startedAt, settledAtMs } of places)
    if (settledAtMs === undefined && pid !== process.pid && !isAlive({ pid, startedAt }))
      db.run('UPDATE places SET settled_at = ? WHERE place = ?', nowMs, place)
}
