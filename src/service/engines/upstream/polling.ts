/** Repeats requests that only ask: polls of a job, and downloads. */
import type { Clock } from '../../../host/clock.js'
import { retry } from '../../../host/retry.js'
import { isTransient } from './upstream-error.js'

export interface PollOptions {
  readonly clock: Pick<Clock, 'sleep'>
  readonly signal: AbortSignal
  /** Returns the pause after poll `number` (from 1). */
  pauseMs(number: number): number
  /** Failed polls in a row after which the job counts as lost. Default: 20. */
  readonly maxFailures?: number
}

/**
 * Resolves with the first value of `poll` that is not undefined. A poll that failed is repeated, because the job
 * continues and may have been paid for.
 */
export async function pollUntilDone<Value>(
  poll: (number: number) => Promise<Value | undefined>,
  { clock, signal, pauseMs, maxFailures = 20 }: PollOptions,
): Promise<Value> {
  let failures = 0
  return await retry<Value | undefined, Value>({
    async attempt(number) {
      try {
        const value = await poll(number)
        failures = 0
        return value
      } catch (error) {
        if (!isTransient(error) || ++failures >= maxFailures) throw error
        return undefined
      }
    },
    decide: (value, number) => (value === undefined ? { retryInMs: pauseMs(number) } : { done: value }),
    clock,
    signal,
  })
}
