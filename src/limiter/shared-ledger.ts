/**
 * The slots of a key in a SQLite file that all processes of the machine share; each call is one short transaction.
 *
 * Order: creates first, otherwise first come, first served. A process enters only the head of its own queue, so a process
 * with two hundred runs takes turns with one that has a single run. Nobody polls: every waiter knows a time before which no
 * slot can be free (one window from now, while a request of another process is in flight) and sleeps until then. A waiter
 * that does not come back at that time (killed, stopped, asleep) is skipped.
 *
 * Time is the monotonic clock of the machine, the same for all processes. It restarts with the machine: times in the future
 * are then treated as now, which costs one window at most.
 *
 * The file may be lost on power failure, which is acceptable here: synchronous=OFF.
 *
 * When the file is corrupt, or was removed, a new one takes its place. What other processes were granted in the old one is
 * then unknown, so the new file grants nothing for one window, and each process enters its requests in flight again.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { Clock } from '../host/clock.js'
import { isCorruption, openOrQuarantine, quarantine, reopenOrQuarantine } from '../host/corruption.js'
import type { OpenDatabase } from '../host/database.js'
import { inodeOf } from '../host/database-file.js'
import { isAlive, ownMark, type ProcessMark } from '../host/processes.js'
import type { Ledger, NoSlotYet, Purpose } from './limit-ledger.js'
import { LEDGER_MIGRATIONS } from './migrations.js'
import { type Limit, waitMs } from './window.js'

export interface SharedLedger extends Ledger {
  close(): void
}

export interface SharedLedgerOptions {
  readonly path: string
  /** Identifies the key: see `budgetOf`. */
  readonly budget: string
  readonly limit: Limit
  readonly clock: Pick<Clock, 'monotonic'>
}

/** A hash that identifies the limit of a key without revealing the key. */
export const budgetOf = (origin: string, apiKey: string): string =>
  createHash('sha256').update(`${origin}\n${apiKey}`).digest('hex').slice(0, 32)

const RANK: Readonly<Record<Purpose, number>> = { create: 0, status: 1 }
/** A waiter that is later than this is skipped. */
const LATE_MS = 1_000
/** A waiter that is later than this is removed. */
const GONE_MS = 60_000
/** No request takes longer: its slot is freed even if the process seems to be alive. */
const MAX_REQUEST_MS = 3_600_000
/** The longest `holdBack`; a later end is from a previous boot. */
const MAX_HOLD_MS = 61_000
/** A transaction takes a fraction of a millisecond; a file that is locked for longer is unusable. */
const BUSY_MS = 2_000

/** The rows of `budgets` with this name apply to every budget. */
const EVERY_BUDGET = ''

/** A request of this process in flight. */
interface InFlight {
  /** The number of its row in the file that is open. */
  slot: number
  readonly grantedAtMs: number
}

/** Throws what `openDatabase` throws. Every other call throws the database's errors. */
export function openSharedLedger({ path, budget, limit, clock }: SharedLedgerOptions): SharedLedger {
  const file = {
    path,
    migrations: LEDGER_MIGRATIONS,
    synchronous: 'OFF',
    journalMode: 'TRUNCATE',
    busyTimeoutMs: BUSY_MS,
    replacementRows: () =>
      `INSERT INTO budgets (budget, held_back_until) VALUES ('${EVERY_BUDGET}', ${clock.monotonic() + limit.windowMs})`,
  } as const
  let isReplacedHere = false
  // Nothing in it is worth a warning.
  const onQuarantine = () => {
    isReplacedHere = true
  }
  const owner = `${process.pid}-${randomBytes(6).toString('hex')}`
  const inFlight = new Set<InFlight>()
  let opened = openOrQuarantine(file, onQuarantine)

  holdBackAfterReplacement()

  /** Counted from here: others were granted slots in the old file until it was replaced. */
  function holdBackAfterReplacement(): void {
    if (isReplacedHere) holdBack(opened, EVERY_BUDGET, limit.windowMs, clock.monotonic())
    isReplacedHere = false
  }

  function replace(): void {
    opened.close()
    // A file that was overwritten in place would be read with the log of the old one.
    if (inodeOf(file.path) === opened.inode) quarantine(file, opened.inode, onQuarantine)
    opened = reopenOrQuarantine(file, onQuarantine)
    opened.transaction(() => {
      // A process that knew nothing of the old file may have created this one.
      isReplacedHere ||= !isReplacement(opened)
      holdBackAfterReplacement()
      for (const request of inFlight) request.slot = grant(opened, budget, ownMark(), request.grantedAtMs)
    })
  }

  /** Works on the file that other processes use now: the opened one may be corrupt, removed or quarantined. */
  function shared<Result>(work: (db: OpenDatabase) => Result): Result {
    if (!opened.isCurrent()) replace()
    try {
      return work(opened)
    } catch (error) {
      if (isCorruption(error)) {
        opened.close()
        quarantine(file, opened.inode, onQuarantine)
      } else if (opened.isCurrent()) throw error
      replace()
      return work(opened)
    }
  }

  function take(db: OpenDatabase, purpose: Purpose): InFlight | NoSlotYet {
    // Read under the lock, so that no time in the file is later.
    const nowMs = clock.monotonic()
    removeExpired(db, budget, limit, nowMs)
    const slots = slotsOf(db, budget)
    const ahead = countAhead(db, { budget, owner, purpose, nowMs })
    const held = heldBackUntil(db, budget) - nowMs
    const wait = Math.max(waitMs(slots, limit, nowMs, ahead), held <= MAX_HOLD_MS ? held : 0)
    if (wait > 0) {
      settleForDeadProcesses(db, slots, nowMs)
      const retryInMs = Math.min(wait, limit.windowMs)
      saveWaiter(db, { budget, owner, purpose, dueAtMs: nowMs + retryInMs })
      return { retryInMs }
    }
    removeWaiter(db, { budget, owner, purpose })
    return { slot: grant(db, budget, ownMark(), nowMs), grantedAtMs: nowMs }
  }

  function takeShared(purpose: Purpose): InFlight | NoSlotYet {
    const taken = shared((db) => db.transaction(() => take(db, purpose)))
    // In a file that was replaced meanwhile nobody sees the slot.
    return 'retryInMs' in taken || opened.isCurrent() ? taken : takeShared(purpose)
  }

  return {
    take(purpose) {
      const taken = takeShared(purpose)
      if ('retryInMs' in taken) return taken
      inFlight.add(taken)
      return {
        settle() {
          if (!inFlight.has(taken)) return
          shared((db) => settle(db, taken.slot, clock.monotonic()))
          inFlight.delete(taken)
        },
        cancel() {
          if (!inFlight.delete(taken)) return
          shared((db) => db.run('DELETE FROM places WHERE place = ?', taken.slot))
        },
      }
    },
    withdraw: (purpose) => shared((db) => removeWaiter(db, { budget, owner, purpose })),
    holdBack: (ms) => void shared((db) => holdBack(db, budget, ms, clock.monotonic())),
    held: () => shared((db) => countHeld(db, budget, clock.monotonic() - limit.windowMs)),
    close: () => opened.close(),
  }
}

const isReplacement = (db: OpenDatabase): boolean =>
  db.get('SELECT 1 FROM budgets WHERE budget = ?', EVERY_BUDGET) !== undefined

const holdBack = (db: OpenDatabase, budget: string, ms: number, nowMs: number) =>
  db.run(
    `INSERT INTO budgets (budget, held_back_until) VALUES (?, ?)
     ON CONFLICT (budget) DO UPDATE SET held_back_until = max(
       excluded.held_back_until,
       CASE WHEN held_back_until > ? THEN 0 ELSE held_back_until END)`,
    budget,
    nowMs + ms,
    nowMs + MAX_HOLD_MS,
  )

const settle = (db: OpenDatabase, slot: number, nowMs: number) =>
  db.run('UPDATE places SET settled_at = ? WHERE place = ? AND settled_at IS NULL', nowMs, slot)

/** Removes what no longer counts, and moves times of a previous boot to now. */
function removeExpired(db: OpenDatabase, budget: string, { windowMs }: Limit, nowMs: number): void {
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
    nowMs - MAX_REQUEST_MS,
  )
  db.run(
    'DELETE FROM waiters WHERE budget = ? AND (due_at < ? OR due_at > ?)',
    budget,
    nowMs - GONE_MS,
    nowMs + windowMs + LATE_MS,
  )
}

/** Tables and columns keep the name `place` of earlier versions. */
interface SlotRow {
  readonly slot: number
  readonly pid: number
  readonly startedAt: string | undefined
  settledAtMs: number | undefined
}

const slotsOf = (db: OpenDatabase, budget: string): readonly SlotRow[] =>
  db
    .all('SELECT place, pid, started_at, settled_at FROM places WHERE budget = ?', budget)
    .map(({ place, pid, started_at, settled_at }) => ({
      slot: Number(place),
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
  Number(
    db.get('SELECT max(held_back_until) AS until FROM budgets WHERE budget IN (?, ?)', budget, EVERY_BUDGET)
      ?.until ?? 0,
  )

interface WaiterKey {
  readonly budget: string
  readonly owner: string
  readonly purpose: Purpose
}

/** The waiters of other processes whose turn is before ours. */
const countAhead = (
  db: OpenDatabase,
  { budget, owner, purpose, nowMs }: WaiterKey & { readonly nowMs: number },
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

function saveWaiter(
  db: OpenDatabase,
  { budget, owner, purpose, dueAtMs }: WaiterKey & { readonly dueAtMs: number },
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

function removeWaiter(db: OpenDatabase, { budget, owner, purpose }: WaiterKey): void {
  db.run('DELETE FROM waiters WHERE budget = ? AND owner = ? AND rank = ?', budget, owner, RANK[purpose])
}

const grant = (db: OpenDatabase, budget: string, { pid, startedAt }: ProcessMark, nowMs: number): number =>
  Number(
    db.get(
      'INSERT INTO places (budget, pid, started_at, granted_at) VALUES (?, ?, ?, ?) RETURNING place',
      budget,
      pid,
      startedAt ?? null,
      nowMs,
    )?.place,
  )

/** A dead process cannot settle its slots. Its requests may have been sent, so they count for one window from now. */
function settleForDeadProcesses(db: OpenDatabase, slots: readonly SlotRow[], nowMs: number): void {
  for (const { slot, pid, startedAt, settledAtMs } of slots)
    if (settledAtMs === undefined && pid !== process.pid && !isAlive({ pid, startedAt }))
      settle(db, slot, nowMs)
}
