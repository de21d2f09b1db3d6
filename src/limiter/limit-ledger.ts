/**
 * Types of the ledgers that store the slots of a rate limit: in this process, or in a file that all processes of the
 * machine share. Also the ledger of one process.
 */
import type { Clock } from '../host/clock.js'
import { RUNS_LIMIT } from '../protocol/limits.js'
import { countingSlots, type Slot, waitMs } from './window.js'

export type Purpose = 'create' | 'status'

/** A granted slot. It counts until one window after `settle`. */
export interface TakenSlot {
  settle(): void
  /** Call it if nothing was sent: the slot is free immediately. */
  cancel(): void
}

export interface NoSlotYet {
  /** Time until a slot may be free, not earlier. Infinity: a slot of this process must be settled first. */
  readonly retryInMs: number
}

export type SlotAnswer = TakenSlot | NoSlotYet

/**
 * Keeps at most one waiter for each purpose, in its position in the queue, until `take` succeeds or `withdraw` is
 * called.
 */
export interface Ledger {
  take(purpose: Purpose): SlotAnswer
  withdraw(purpose: Purpose): void
  /** Grants nothing for `ms`. */
  holdBack(ms: number): void
  /** Returns the number of slots that count now. */
  usedSlots(): number
}

/** Stores the slots of this process only: for a key that no other process uses, or if no file can be shared. */
export function createMemoryLedger(clock: Clock): Ledger {
  let slots: readonly Slot[] = []
  let heldBackUntilMs = 0
  return {
    take() {
      const nowMs = clock.monotonic()
      slots = countingSlots(slots, RUNS_LIMIT, nowMs)
      const retryInMs = Math.max(waitMs(slots, RUNS_LIMIT, nowMs), heldBackUntilMs - nowMs)
      if (retryInMs > 0) return { retryInMs }
      const slot: Slot = { settledAtMs: undefined }
      slots = [...slots, slot]
      return {
        settle() {
          slot.settledAtMs ??= clock.monotonic()
        },
        cancel() {
          slots = slots.filter((other) => other !== slot)
        },
      }
    },
    withdraw() {},
    holdBack(ms) {
      heldBackUntilMs = Math.max(heldBackUntilMs, clock.monotonic() + ms)
    },
    usedSlots: () => countingSlots(slots, RUNS_LIMIT, clock.monotonic()).length,
  }
}
