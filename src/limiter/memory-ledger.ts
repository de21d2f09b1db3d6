/** Slots of this process only: for a key that no other process uses, or where no file can be shared. */
import type { Clock } from '../host/clock.js'
import type { Ledger } from './limit-ledger.js'
import { held, type Limit, type Slot, waitMs } from './window.js'

export function createMemoryLedger(limit: Limit, clock: Pick<Clock, 'monotonic'>): Ledger {
  let slots: readonly Slot[] = []
  let heldBackUntilMs = 0
  return {
    take() {
      const nowMs = clock.monotonic()
      slots = held(slots, limit, nowMs)
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
    held: () => held(slots, limit, clock.monotonic()).length,
  }
}
