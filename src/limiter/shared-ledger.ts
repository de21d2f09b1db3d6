/**
 * The slots of a key in a SQLite file that all processes of the machine share; each call is one short transaction.
 *
 * Order: creates first, otherwise first come, first served. A process records only the first waiter of its queue, so a
 * process with two hundred runs takes turns with a process that has a single run. There is no polling: every waiter
 * knows a time before which no slot can be free (one window from now, while a request of another process is in flight)
 * and sleeps until then. A waiter that does not come back at that time (killed, stopped, asleep) is skipped.
 *
 * Time is the monotonic clock of the machine, the same for all processes. It restarts with the machine: times in the
 * future are then treated as now, which costs one window at most.
 *
 * The file may be lost on power failure, which is acceptable here: synchronous=OFF.
 *
 * If the file is corrupt or was removed, it is replaced by a new one. The slots of other processes in the old file are
 * then unknown, so the new file grants nothing for one window, and each process records its requests in flight again.
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
  countUsed,
  EVERY_BUDGET,
  grant,
  heldBackUntil,
  holdBack,
  isReplacement,
  LEDGER_MIGRATIONS,
  MAX_HOLD_MS,
  removeExpired,
  removeWaiter,
  saveWaiter,
  settle,
  settleForDeadProcesses,
  slotsOf,
} from './ledger-rows.js'
import type { Ledger, NoSlotYet, Purpose, TakenSlot } from './limit-ledger.js'
import { type Limit, waitMs } from './window.js'

export interface SharedLedger extends Ledger {
  /** Takes a slot for a request that was already sent. The slot counts even if it exceeds the limit. */
  enter(): TakenSlot
  close(): void
}

interface SharedLedgerOptions {
  readonly path: string
  /** Identifies the key; from `keyHashOf`. */
  readonly keyHash: string
  readonly limit: Limit
  readonly clock: Pick<Clock, 'monotonic'>
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

/**
 * Timeout of a lock. A transaction takes a fraction of a millisecond, so a file that is locked for longer is unusable.
 */
const BUSY_MS = 2_000

/** A request of this process in flight. */
interface SentRequest {
  /** Number of its row in the open file. */
  slot: number
  readonly grantedAtMs: number
}

/** Opens the ledger. Throws the errors of `openDatabase`; all methods throw the errors of the database. */
export function openSharedLedger({ path, keyHash, limit, clock }: SharedLedgerOptions): SharedLedger {
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
  // No warning, because the file contains nothing of value.
  const onQuarantine = () => {
    isReplacedHere = true
  }
  const owner = `${process.pid}-${randomBytes(6).toString('hex')}`
  const folder = dirname(path)
  const lock = processLockIn(folder)
  const inFlight = new Set<SentRequest>()
  let opened = openOrQuarantine(file, onQuarantine)
  let isCorrupt = false
  /** Whether the open file contains the requests in flight. */
  let isComplete = true

  holdBackAfterReplacement()

  /**
   * Grants nothing for one window from now, because other processes were granted slots in the old file until it was
   * replaced.
   */
  function holdBackAfterReplacement(): void {
    if (isReplacedHere) holdBack(opened, EVERY_BUDGET, limit.windowMs, clock.monotonic())
    isReplacedHere = false
  }

  /** If it fails, the next call tries again. */
  function replace(): void {
    opened.close()
    // Quarantine a file that was overwritten in place: SQLite would read it with the log of the old file.
    if (inodeOf(file.path) === opened.inode) quarantine(file, opened.inode, onQuarantine)
    opened = reopenOrQuarantine(file, onQuarantine)
    isCorrupt = false
    isComplete = false
    complete()
  }

  function complete(): void {
    opened.transaction(() => {
      // This file may have been created by another process that did not know the old file.
      isReplacedHere ||= !isReplacement(opened)
      holdBackAfterReplacement()
      for (const request of inFlight) request.slot = grant(opened, keyHash, lock.id, request.grantedAtMs)
    })
    isComplete = true
  }

  /**
   * Runs `work` on the current file. The opened file may be corrupt, removed or quarantined, and is then replaced
   * first.
   */
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

  function take(db: OpenDatabase, purpose: Purpose, holder: string): SentRequest | NoSlotYet {
    // Read the clock under the lock, so that no time in the file is later.
    const nowMs = clock.monotonic()
    removeExpired(db, keyHash, limit, nowMs)
    const slots = slotsOf(db, keyHash)
    const ahead = countAhead(db, { keyHash, owner, purpose, nowMs })
    const heldBackMs = heldBackUntil(db, keyHash) - nowMs
    const wait = Math.max(waitMs(slots, limit, nowMs, ahead), heldBackMs <= MAX_HOLD_MS ? heldBackMs : 0)
    if (wait > 0) {
      settleForDeadProcesses(db, slots, runningIn(folder), nowMs)
      const retryInMs = Math.min(wait, limit.windowMs)
      saveWaiter(db, { keyHash, owner, purpose, dueAtMs: nowMs + retryInMs })
      return { retryInMs }
    }
    removeWaiter(db, { keyHash, owner, purpose })
    return { slot: grant(db, keyHash, holder, nowMs), grantedAtMs: nowMs }
  }

  function takeShared(purpose: Purpose): SentRequest | NoSlotYet {
    // Read the id before the transaction, because other processes wait for the transaction.
    const { id } = lock
    const taken = shared((db) => db.transaction(() => take(db, purpose, id)))
    // If the file was replaced during the call, no other process sees the slot in the old file.
    return 'retryInMs' in taken || opened.isCurrent() ? taken : takeShared(purpose)
  }

  function takenSlot(taken: SentRequest): TakenSlot {
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
      const slot = shared((db) => grant(db, keyHash, id, nowMs))
      return takenSlot({ slot, grantedAtMs: nowMs })
    },
    withdraw: (purpose) => shared((db) => removeWaiter(db, { keyHash, owner, purpose })),
    holdBack: (ms) => void shared((db) => holdBack(db, keyHash, ms, clock.monotonic())),
    usedSlots: () => shared((db) => countUsed(db, keyHash, clock.monotonic() - limit.windowMs)),
    close() {
      opened.close()
      lock.end(inFlight.size > 0)
    },
  }
}
