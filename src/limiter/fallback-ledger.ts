/** When the shared ledger fails, the limit is kept within this process from then on. */
import type { Clock } from '../host/clock.js'
import type { Ledger } from './limit-ledger.js'
import { createMemoryLedger } from './memory-ledger.js'
import type { Limit } from './window.js'

export interface FallbackOptions {
  readonly limit: Limit
  readonly clock: Pick<Clock, 'monotonic'>
  /** Called once. */
  onLost(error: unknown): void
}

export function withFallback(shared: Ledger, { limit, clock, onLost }: FallbackOptions): Ledger {
  const memory = createMemoryLedger(limit, clock)
  let isLost = false
  let hasTaken = false

  function attempt<Result>(work: (ledger: Ledger) => Result): Result {
    if (isLost) return work(memory)
    try {
      return work(shared)
    } catch (error) {
      isLost = true
      // Slots granted there still count, and can no longer be read.
      if (hasTaken) memory.holdBack(limit.windowMs)
      onLost(error)
      return work(memory)
    }
  }

  return {
    take(purpose) {
      const answer = attempt((ledger) => ledger.take(purpose))
      if ('retryInMs' in answer) return answer
      const from = isLost ? memory : shared
      hasTaken = true
      return {
        settle() {
          if (from === memory) answer.settle()
          else attempt((ledger) => ledger === shared && answer.settle())
        },
        cancel() {
          if (from === memory) answer.cancel()
          else attempt((ledger) => ledger === shared && answer.cancel())
        },
      }
    },
    withdraw: (purpose) => attempt((ledger) => ledger.withdraw(purpose)),
    holdBack: (ms) => attempt((ledger) => ledger.holdBack(ms)),
    held: () => attempt((ledger) => ledger.held()),
  }
}
