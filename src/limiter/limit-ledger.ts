/**
 * Stores the slots of a rate limit: in this process, in a file that all processes of the machine share, or in a
 * Redis server that machines share.
 */
import type { Clock } from '../host/clock.js'
import { countingSlots, type Limit, type Slot, waitMs } from './window.js'

export type Purpose = 'create' | 'status'

/** A slot counts until one window after `settle`. */
export interface TakenSlot {
  settle(): void
  /** Nothing was sent: the slot is free at once. */
  cancel(): void
}

export interface NoSlotYet {
  /** No slot can be free earlier. Infinity: not before a slot of this process is settled. */
  readonly retryInMs: number
}

export type SlotAnswer = TakenSlot | NoSlotYet

/** Has at most one waiter for each purpose, whose turn it keeps until `take` succeeds or `withdraw` is called. */
export interface Ledger {
  take(purpose: Purpose): SlotAnswer
  withdraw(purpose: Purpose): void
  /** Grants nothing for that long. */
  holdBack(ms: number): void
  /** The number of slots that count now. */
  usedSlots(): number
}

/** A ledger on another machine. One `take` at a time. */
export interface RemoteLedger extends Omit<Ledger, 'take'> {
  take(purpose: Purpose): Promise<SlotAnswer>
}

/** Slots of this process only: for a key that no other process uses, or where no file can be shared. */
export function createMemoryLedger(limit: Limit, clock: Pick<Clock, 'monotonic'>): Ledger {
  let slots: readonly Slot[] = []
  let heldBackUntilMs = 0
  return {
    take() {
      const nowMs = clock.monotonic()
      slots = countingSlots(slots, limit, nowMs)
      const retryInMs = Math.max(waitMs(slots, limit, nowMs), heldBackUntilMs - nowMs)
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
    usedSlots: () => countingSlots(slots, limit, clock.monotonic()).length,
  }
}
