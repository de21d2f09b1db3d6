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
 * A corrupt file is replaced when the ledger is opened. The slots of other processes in the old file are then unknown, so
 * the new file grants nothing for one window. If the file fails or is replaced while it is in use, the methods throw:
 * `withFallback` then keeps the limit within the process.
 */
import { createHash, randomBytes } from 'node:crypto'
import { dirname } from 'node:path'
import type { Clock } from '../host/clock.js'
import { openOrQuarantine } from '../host/corruption.js'
import type { OpenDatabase } from '../host/database.js'
import { processLockIn, runningIn } from '../host/process-lock.js'
import { RUNS_LIMIT } from '../protocol/limits.js'
import {
  countAhead,
  countUsed,
  EVERY_BUDGET,
  grant,
  heldBackUntil,
  holdBack,
  LEDGER_MIGRATIONS,
  MAX_HOLD_MS,
  removeExpired,
  removeWaiter,
  saveWaiter,
  settle,
  settleForDeadProcesses,
  slotsOf,
} from './ledger-rows.js'
import {
  createMemoryLedger,
  type Ledger,
  type NoSlotYet,
  type Purpose,
  type TakenSlot,
} from './limit-ledger.js'
import { waitMs } from './window.js'

export interface SharedLedger extends Ledger {
  close(): void
}

interface SharedLedgerOptions {
  readonly path: string
  /** Identifies the key; from `keyHashOf`. */
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

/**
 * Timeout of a lock. A transaction takes a fraction of a millisecond, so a file that is locked for longer is unusable.
 */
const BUSY_MS = 2_000

/** Opens the ledger. Throws the errors of `openDatabase`; all methods throw those of the database. */
export function openSharedLedger({ path, keyHash, clock }: SharedLedgerOptions): SharedLedger {
  const file = {
    path,
    migrations: LEDGER_MIGRATIONS,
    synchronous: 'OFF',
    journalMode: 'TRUNCATE',
    busyTimeoutMs: BUSY_MS,
    replacementRows: () =>
      `INSERT INTO budgets (budget, held_back_until) VALUES ('${EVERY_BUDGET}', ${clock.monotonic() + RUNS_LIMIT.windowMs})`,
  } as const
  const owner = `${process.pid}-${randomBytes(6).toString('hex')}`
  const folder = dirname(path)
  const lock = processLockIn(folder)
  // No warning if it is replaced, because the file contains nothing of value.
  const opened = openOrQuarantine(file, () => {})
  let inFlight = 0

  /** Throws if another file is at the path: other processes do not see what this one writes. */
  function shared<Result>(work: (db: OpenDatabase) => Result): Result {
    if (!opened.isCurrent()) throw new Error(`${path} was removed or replaced`)
    return work(opened)
  }

  function take(db: OpenDatabase, purpose: Purpose, holder: string): number | NoSlotYet {
    // Read the clock under the lock, so that no time in the file is later.
    const nowMs = clock.monotonic()
    removeExpired(db, keyHash, nowMs)
    const slots = slotsOf(db, keyHash)
    const ahead = countAhead(db, { keyHash, owner, purpose, nowMs })
    const heldBackMs = heldBackUntil(db, keyHash) - nowMs
    const wait = Math.max(waitMs(slots, RUNS_LIMIT, nowMs, ahead), heldBackMs <= MAX_HOLD_MS ? heldBackMs : 0)
    if (wait > 0) {
      settleForDeadProcesses(db, slots, runningIn(folder), nowMs)
      const retryInMs = Math.min(wait, RUNS_LIMIT.windowMs)
      saveWaiter(db, { keyHash, owner, purpose, dueAtMs: nowMs + retryInMs })
      return { retryInMs }
    }
    removeWaiter(db, { keyHash, owner, purpose })
    return grant(db, keyHash, holder, nowMs)
  }

  function takenSlot(slot: number): TakenSlot {
    let isEnded = false
    const end = (work: (db: OpenDatabase) => unknown) => {
      if (isEnded) return
      shared(work)
      isEnded = true
      inFlight--
    }
    inFlight++
    return {
      settle: () => end((db) => settle(db, slot, clock.monotonic())),
      cancel: () => end((db) => db.run('DELETE FROM places WHERE place = ?', slot)),
    }
  }

  return {
    take(purpose) {
      // Read the id before the transaction, because other processes wait for the transaction.
      const { id } = lock
      const taken = shared((db) => db.transaction(() => take(db, purpose, id)))
      return typeof taken === 'number' ? takenSlot(taken) : taken
    },
    withdraw: (purpose) => shared((db) => removeWaiter(db, { keyHash, owner, purpose })),
    holdBack: (ms) => void shared((db) => holdBack(db, keyHash, ms, clock.monotonic())),
    usedSlots: () => shared((db) => countUsed(db, keyHash, clock.monotonic() - RUNS_LIMIT.windowMs)),
    close() {
      opened.close()
      lock.end(inFlight > 0)
    },
  }
}

interface FallbackOptions {
  readonly clock: Clock
  /** Called once, when the shared ledger fails. */
  onLost(error: unknown): void
}

/**
 * Combines the shared ledger with a memory ledger of this process, for the time after the shared one has failed. Each
 * request has a slot in both, so slots that were granted before the failure still count. The shared ledger is not tried
 * again. `open` may throw if the file cannot be used.
 */
export function withFallback(open: () => SharedLedger, { clock, onLost }: FallbackOptions): SharedLedger {
  const memory = createMemoryLedger(clock)
  let opened: SharedLedger | undefined
  let isLost = false
  let hasGranted = false

  /** Returns undefined if the shared ledger cannot be used. */
  function attempt<Result>(work: (shared: SharedLedger) => Result): Result | undefined {
    if (isLost) return undefined
    try {
      opened ??= open()
      return work(opened)
    } catch (error) {
      isLost = true
      // The slots of other processes still count, but can no longer be read.
      if (hasGranted) memory.holdBack(RUNS_LIMIT.windowMs)
      onLost(error)
      return undefined
    }
  }

  attempt(() => {})
  return {
    take(purpose) {
      const inShared = attempt((shared) => shared.take(purpose))
      if (inShared !== undefined && 'retryInMs' in inShared) return inShared
      const inMemory = memory.take(purpose)
      if ('retryInMs' in inMemory) {
        attempt(() => inShared?.cancel())
        return inMemory
      }
      hasGranted ||= inShared !== undefined
      return {
        settle() {
          inMemory.settle()
          attempt(() => inShared?.settle())
        },
        cancel() {
          inMemory.cancel()
          attempt(() => inShared?.cancel())
        },
      }
    },
    withdraw: (purpose) => void attempt((shared) => shared.withdraw(purpose)),
    holdBack(ms) {
      memory.holdBack(ms)
      attempt((shared) => shared.holdBack(ms))
    },
    usedSlots: () => attempt((shared) => shared.usedSlots()) ?? memory.usedSlots(),
    close: () => opened?.close(),
  }
}
