/** Whether the service can take requests: its disk has space, a change of the database succeeds, and its storage answers. */
import type { Clock } from '../host/clock.js'
import { settlesWithin } from './settles-within.js'
import type { Store } from './store/contract.js'

/** A write that takes longer means that the database is locked; a storage that takes longer is away. */
const LIMIT_MS = 1_000
/** Each check writes to the disk and asks the storage, and anybody may ask: so it is made at most once a second. */
const CACHED_MS = 1_000

export interface ReadinessOptions {
  readonly store: Pick<Store, 'checkWritable'>
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>
  isDiskFull(): boolean
  /** Rejects while files cannot be stored; undefined where that does not happen. */
  readonly checkStorage?: (() => Promise<void>) | undefined
}

export function createReadiness({
  store,
  clock,
  isDiskFull,
  checkStorage = async () => {},
}: ReadinessOptions): () => Promise<boolean> {
  let checkedAtMs = Number.NEGATIVE_INFINITY
  let last: Promise<boolean> = Promise.resolve(false)
  return () => {
    if (clock.monotonic() - checkedAtMs < CACHED_MS) return last
    checkedAtMs = clock.monotonic()
    last = isDiskFull()
      ? Promise.resolve(false)
      : settlesWithin(LIMIT_MS, Promise.all([store.checkWritable(), checkStorage()]), clock).catch(
          () => false,
        )
    return last
  }
}
