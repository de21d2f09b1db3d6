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
import { dirname } from 'node:path'
import type { Clock } from '../host/clock.js'
import { isCorruption, openOrQuarantine, quarantine, reopenOrQuarantine } from '../host/corruption.js'
import type { OpenDatabase } from '../host/database.js'
import { inodeOf } from '../host/database-file.js'
import { processLockIn, runningIn } from '../host/process-lock.js'
import {
  countAhead,
  countHeld,
  EVERY_BUDGET,
  grant,
  heldBackUntil,
  holdBack,
  isReplacement,
  MAX_HOLD_MS,
  removeExpired,
  removeWaiter,
  saveWaiter,
  settle,
  settleForDeadProcesses,
  slotsOf,
} from './ledger-rows.js'
import type { Ledger, NoSlotYet, Purpose, TakenSlot } from './limit-ledger.js'
import { LEDGER_MIGRATIONS } from './migrations.js'
import { type Limit, waitMs } from './window.js'

export interface SharedLedger extends Ledger {
  /** A slot for a request that was sent without one: it counts, even beyond the limit. */
  enter(): TakenSlot
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
  createHash('sha256')
    .update(`${withOneLoopback(origin)}\n${apiKey}`)
    .digest('hex')
    .slice(0, 32)

/**
 * `localhost` is 127.0.0.1 or ::1: with the same port and the same key it is the same service. Where it is not, the two share
 * one limit, which is slower and never too fast.
 */
const withOneLoopback = (origin: string): string =>
  origin.replace(/^(https?:\/\/)(127\.0\.0\.1|\[::1\])(?=:|$)/, '$1localhost')

/** A transaction takes a fraction of a millisecond; a file that is locked for longer is unusable. */
const BUSY_MS = 2_000

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
  const folder = dirname(path)
  const lock = processLockIn(folder)
  const inFlight = new Set<InFlight>()
  let opened = openOrQuarantine(file, onQuarantine)
  let isCorrupt = false
  /** Whether the file that is open has the requests in flight. */
  let isComplete = true

  holdBackAfterReplacement()

  /** Counted from here: others were granted slots in the old file until it was replaced. */
  function holdBackAfterReplacement(): void {
    if (isReplacedHere) holdBack(opened, EVERY_BUDGET, limit.windowMs, clock.monotonic())
    isReplacedHere = false
  }

  /** When it fails, the next call tries again. */
  function replace(): void {
    opened.close()
    // A file that was overwritten in place would be read with the log of the old one.
    if (inodeOf(file.path) === opened.inode) quarantine(file, opened.inode, onQuarantine)
    opened = reopenOrQuarantine(file, onQuarantine)
    isCorrupt = false
    isComplete = false
    complete()
  }

  function complete(): void {
    opened.transaction(() => {
      // A process that knew nothing of the old file may have created this one.
      isReplacedHere ||= !isReplacement(opened)
      holdBackAfterReplacement()
      for (const request of inFlight) request.slot = grant(opened, budget, lock.id, request.grantedAtMs)
    })
    isComplete = true
  }

  /** Works on the file that other processes use now: the opened one may be corrupt, removed or quarantined. */
  function shared<Result>(work: (db: OpenDatabase) => Result): Result {
    if (isCorrupt || !opened.isCurrent()) replace()
    else if (!isComplete) complete()
    try {
      return work(opened)
    } catch (error) {
      isCorrupt = isCorruption(error)
      if (!isCorrupt && opened.isCurrent()) throw error
      replace()
      return work(opened)
    }
  }

  function take(db: OpenDatabase, purpose: Purpose, holder: string): InFlight | NoSlotYet {
    // Read under the lock, so that no time in the file is later.
    const nowMs = clock.monotonic()
    removeExpired(db, budget, limit, nowMs)
    const slots = slotsOf(db, budget)
    const ahead = countAhead(db, { budget, owner, purpose, nowMs })
    const held = heldBackUntil(db, budget) - nowMs
    const wait = Math.max(waitMs(slots, limit, nowMs, ahead), held <= MAX_HOLD_MS ? held : 0)
    if (wait > 0) {
      settleForDeadProcesses(db, slots, runningIn(folder), nowMs)
      const retryInMs = Math.min(wait, limit.windowMs)
      saveWaiter(db, { budget, owner, purpose, dueAtMs: nowMs + retryInMs })
      return { retryInMs }
    }
    removeWaiter(db, { budget, owner, purpose })
    return { slot: grant(db, budget, holder, nowMs), grantedAtMs: nowMs }
  }

  function takeShared(purpose: Purpose): InFlight | NoSlotYet {
    // Taken before the transaction, for which other processes wait.
    const { id } = lock
    const taken = shared((db) => db.transaction(() => take(db, purpose, id)))
    // In a file that was replaced meanwhile nobody sees the slot.
    return 'retryInMs' in taken || opened.isCurrent() ? taken : takeShared(purpose)
  }

  function takenSlot(taken: InFlight): TakenSlot {
    inFlight.add(taken)
    return {
      settle() {
        if (!inFlight.has(taken)) return
        shared((db) => settle(db, taken.slot, clock.monotonic()))
        inFlight.delete(taken)
      },
      cancel() {
        if (!inFlight.has(taken)) return
        shared((db) => db.run('DELETE FROM places WHERE place = ?', taken.slot))
        inFlight.delete(taken)
      },
    }
  }

  return {
    take(purpose) {
      const taken = takeShared(purpose)
      return 'retryInMs' in taken ? taken : takenSlot(taken)
    },
    enter() {
      const nowMs = clock.monotonic()
      const { id } = lock
      const slot = shared((db) => grant(db, budget, id, nowMs))
      return takenSlot({ slot, grantedAtMs: nowMs })
    },
    withdraw: (purpose) => shared((db) => removeWaiter(db, { budget, owner, purpose })),
    holdBack: (ms) => void shared((db) => holdBack(db, budget, ms, clock.monotonic())),
    held: () => shared((db) => countHeld(db, budget, clock.monotonic() - limit.windowMs)),
    close() {
      opened.close()
      lock.end(inFlight.size > 0)
    },
  }
}
