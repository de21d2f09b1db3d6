import type { Clock } from '../../../host/clock.js'
import { retry, stepOf } from '../../../host/retry.js'
import { UpstreamError } from './upstream-error.js'

interface Repetition {
  /** Pauses between the tries, of which there is one more. */
  readonly stepsMs: readonly number[]
  readonly clock: Pick<Clock, 'sleep'>
  readonly signal: AbortSignal
  /** Whether the request may succeed later. */
  isRepeated(error: UpstreamError): boolean
}

/** Repeats a request that only asks: the result may have been paid for. `number`: of the try, from 1. */
export const repeated = <Value>(
  ask: (number: number) => Promise<Value>,
  { stepsMs, isRepeated, clock, signal }: Repetition,
): Promise<Value> =>
  retry<Value | UpstreamError, Value>({
    attempt: (number) =>
      ask(number).catch((error: unknown) => {
        if (error instanceof UpstreamError && isRepeated(error)) return error
        throw error
      }),
    decide: (outcome, number) =>
      !(outcome instanceof UpstreamError)
        ? { done: outcome }
        : number > stepsMs.length
          ? { fail: outcome }
          : { retryInMs: stepOf(stepsMs, number) },
    clock,
    signal,
  })
