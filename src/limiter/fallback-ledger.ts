/**
 * A ledger that other processes share, and a memory ledger of this process for the time after the shared one has failed.
 * Each request has a slot in both, so slots that were granted before the failure still count. The shared ledger is not
 * tried again.
 */
import type { Clock } from '../host/clock.js'
import { RUNS_LIMIT } from '../protocol/limits.js'
import { createMemoryLedger, type Ledger } from './limit-ledger.js'
import type { SharedLedger } from './shared-ledger.js'

interface FallbackOptions {
  readonly clock: Clock
  /** Called once, when the shared ledger fails. */
  onLost(error: unknown): void
}

/** Creates the combined ledger. `open` may throw if the file cannot be used. */
export function withFallback(
  open: () => SharedLedger,
  { clock, onLost }: FallbackOptions,
): Ledger & Pick<SharedLedger, 'close'> {
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
