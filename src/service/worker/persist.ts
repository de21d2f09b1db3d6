/** Records the outcome of a run in the database. */
import type { Clock } from '../../host/clock.js'
import { retry, stepOf } from '../../host/retry.js'
import { isRefusal } from './run-failure.js'

const RECORD_STEPS_MS = [250, 500, 1_000, 2_000, 5_000] as const

/**
 * Retries after any error, because the run must not stay in `processing`. Rejects after the database has refused the
 * write `maxRefusals` times, or when the signal is aborted. If the service closes first, the run returns to the queue
 * when the lease is released.
 */
export function createPersist(clock: Pick<Clock, 'sleep'>, onError: (error: unknown) => void) {
  return function persist<Value>(
    write: () => Promise<Value>,
    { maxRefusals, signal }: { readonly maxRefusals: number; readonly signal: AbortSignal },
  ): Promise<Value> {
    let refusals = 0
    return retry<PromiseSettledResult<Value>, Value>({
      clock,
      signal,
      attempt: async () => (await Promise.allSettled([write()]))[0],
      decide(result, number) {
        if (result.status === 'fulfilled') return { done: result.value }
        if (isRefusal(result.reason)) refusals++
        return refusals < maxRefusals
          ? { retryInMs: stepOf(RECORD_STEPS_MS, number) }
          : { fail: result.reason }
      },
      onRetry: (result) => result.status === 'rejected' && onError(result.reason),
    })
  }
}
