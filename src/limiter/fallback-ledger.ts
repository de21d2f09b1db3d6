/** A shared ledger that stops working is left for good: the limit is then kept within this process. */
import type { Clock } from '../host/clock.js'
import type { Ledger } from './limit-ledger.js'
import { createMemoryLedger } from './memory-ledger.js'
import type { Limit } from './window.js'

export interface FallbackOptions {
  readonly limit: Limit
  readonly clock: Pick<Clock, 'monotonic'>
  /** Said once. */
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
      // What was granted there still counts, and nobody can say any more what it was.
      if (hasTaken) memory.holdBack(limit.windowMs)
      onLost(error)
      return work(memory)
    }
  }

  return {
    take(purpose) {
      const answer = attempt((ledger) => ledger.take(purpose))
      if ('againInMs' in answer) return answer
      const from = isLost ? memory : shared
      hasTaken = true
      return {
        settle() {
          if (from === memory) answer.settle()
          else attempt((ledger) => ledger === shared && answer.settle())
        },
      }
    },
    withdraw: (purpose) => attempt((ledger) => ledger.withdraw(purpose)),
    holdBack: (ms) => attempt((ledger) => ledger.holdBack(ms)),
    held: () => attempt((ledger) => ledger.held()),
  }
}
