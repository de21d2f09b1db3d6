/** The places of this process alone: for a key that nobody else has, or where no file can be shared. */
import type { Clock } from '../host/clock.js'
import type { Ledger } from './limit-ledger.js'
import { held, type Limit, type Place, waitMs } from './window.js'

export function createMemoryLedger(limit: Limit, clock: Pick<Clock, 'monotonic'>): Ledger {
  let places: readonly Place[] = []
  let heldBackUntilMs = 0
  return {
    take() {
      const nowMs = clock.monotonic()
      places = held(places, limit, nowMs)
      const againInMs = Math.max(waitMs(places, limit, nowMs), heldBackUntilMs - nowMs)
      if (againInMs > 0) return { againInMs }
      const place: Place = { settledAtMs: undefined }
      places = [...places, place]
      return {
        settle() {
          place.settledAtMs ??= clock.monotonic()
        },
      }
    },
    withdraw() {},
    holdBack(ms) {
      heldBackUntilMs = Math.max(heldBackUntilMs, clock.monotonic() + ms)
    },
    held: () => held(places, limit, clock.monotonic()).length,
  }
}
