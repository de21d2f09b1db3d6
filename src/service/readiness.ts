/** Whether the service can take requests: whether its disk has space, and a change of the database succeeds. */
import type { Clock } from '../host/clock.js'
import { settlesWithin } from './settles-within.js'
import type { Store } from './store/contract.js'

/** A write that takes longer means that the database is locked. */
const LIMIT_MS = 1_000
/** Each check writes to the disk, and anybody may ask: so it is made at most once a second. */
const CACHED_MS = 1_000

export interface ReadinessOptions {
  readonly store: Pick<Store, 'checkWritable'>
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>
  isDiskFull(): boolean
}

export function createReadiness({ store, clock, isDiskFull }: ReadinessOptions): () => Promise<boolean> {
  let checkedAtMs = Number.NEGATIVE_INFINITY
  let last: Promise<boolean> = Promise.resolve(false)
  return () => {
    if (clock.monotonic() - checkedAtMs < CACHED_MS) return last
    checkedAtMs = clock.monotonic()
    last = isDiskFull()
      ? Promise.resolve(false)
      : settlesWithin(LIMIT_MS, store.checkWritable(), clock).catch(() => false)
    return last
  }
}
