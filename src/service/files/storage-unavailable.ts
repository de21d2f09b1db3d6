/** A storage that is away for a while: what was asked had no effect, and may succeed later. */
import { stepOf } from '../../host/backoff.js'
import type { Clock } from '../../host/clock.js'
import { retry } from '../../host/retry.js'

export class StorageUnavailable extends Error {
  override readonly name = 'StorageUnavailable'
}

const STEPS_MS = [250, 500, 1_000, 2_000, 5_000] as const

export interface Patience {
  readonly clock: Pick<Clock, 'sleep'>
  readonly signal: AbortSignal
  onError(error: unknown): void
}

type Attempt<Value> = { readonly value: Value } | { readonly unavailable: StorageUnavailable }

/** Does the work again while it fails with `StorageUnavailable`, until the signal is aborted. */
export const untilStorageAnswers = <Value>(
  work: () => Promise<Value>,
  { clock, signal, onError }: Patience,
): Promise<Value> =>
  retry<Attempt<Value>, Value>({
    clock,
    signal,
    attempt: () =>
      work().then(
        (value) => ({ value }),
        (error: unknown) => {
          if (error instanceof StorageUnavailable) return { unavailable: error }
          throw error
        },
      ),
    decide: (outcome, number) =>
      'value' in outcome ? { done: outcome.value } : { retryInMs: stepOf(STEPS_MS, number) },
    onRetry: (outcome) => 'unavailable' in outcome && onError(outcome.unavailable),
  })
