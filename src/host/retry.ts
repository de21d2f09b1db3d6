/**
 * The retry loop of the program, and the waits between tries. The caller's pure function `decide` decides whether and
 * when to retry.
 */
import type { Clock } from './clock.js'

export type RetryDecision<Value> =
  | { readonly done: Value }
  | { readonly fail: unknown }
  | { readonly retryInMs: number }

export interface Retry<Outcome, Value> {
  /** Makes one attempt. Returns expected failures as outcomes; a thrown error ends the loop. */
  attempt(number: number): Promise<Outcome>
  /** Decides what to do after the outcome of attempt `number` (from 1). */
  decide(outcome: Outcome, number: number): RetryDecision<Value>
  readonly clock: Clock
  readonly signal?: AbortSignal | undefined
  onRetry?(outcome: Outcome, waitMs: number): void
}

export async function retry<Outcome, Value>(policy: Retry<Outcome, Value>): Promise<Value> {
  for (let number = 1; ; number++) {
    policy.signal?.throwIfAborted()
    const outcome = await policy.attempt(number)
    const verdict = policy.decide(outcome, number)
    if ('done' in verdict) return verdict.done
    if ('fail' in verdict) throw verdict.fail
    policy.onRetry?.(outcome, verdict.retryInMs)
    await policy.clock.sleep(verdict.retryInMs, policy.signal)
  }
}

interface RetriedErrors {
  readonly clock: Clock
  readonly signal?: AbortSignal | undefined
  /** Returns the pause after an error of attempt `number` (from 1). Undefined: the error is final. */
  pauseMs(error: unknown, number: number): number | undefined
  /** Called before each pause. */
  onRetry?(error: unknown): void
}

/** Calls `work` again after errors. Rejects with a final error, or with the signal's reason. */
export const retryErrors = <Value>(
  work: (number: number) => Promise<Value>,
  { clock, signal, pauseMs, onRetry }: RetriedErrors,
): Promise<Value> =>
  retry<PromiseSettledResult<Value>, Value>({
    attempt: async (number) => (await Promise.allSettled([work(number)]))[0],
    decide(result, number) {
      if (result.status === 'fulfilled') return { done: result.value }
      const retryInMs = pauseMs(result.reason, number)
      return retryInMs === undefined ? { fail: result.reason } : { retryInMs }
    },
    onRetry: (result) => result.status === 'rejected' && onRetry?.(result.reason),
    clock,
    signal,
  })

/** Returns the wait after try `number` (from 1); the last step repeats. */
export const stepOf = (stepsMs: readonly number[], number: number): number =>
  stepsMs[Math.min(number, stepsMs.length) - 1] ?? 0

/** Returns a number between `min` and `max`; `random` is in [0, 1). */
export const jittered = (range: { readonly min: number; readonly max: number }, random: number): number =>
  Math.round(range.min + (range.max - range.min) * random)

/** Longest time that a `Retry-After` may ask for. */
const MAX_RETRY_AFTER_MS = 60_000

/**
 * Parses a `Retry-After` header of seconds or an HTTP date (RFC 9110, 10.2.3). Returns milliseconds, at most a minute, and
 * 0 if the header is missing or invalid.
 */
export function retryAfterMs(header: string | undefined, nowMs: number): number {
  const value = header?.trim() ?? ''
  // `Date.parse` accepts almost anything that ends in a number, so require a time of day.
  const date = /\d\d:\d\d:\d\d/.test(value) ? Date.parse(value) : Number.NaN
  const waitMs = /^\d+(\.\d+)?$/.test(value) ? Number(value) * 1_000 : date - nowMs
  return Number.isNaN(waitMs) ? 0 : Math.min(Math.max(0, waitMs), MAX_RETRY_AFTER_MS)
}
