/** The only retry loop. The caller decides, in a pure function, what is retried and when. */
import type { Clock } from './clock.js'

export type RetryDecision<Value> =
  | { readonly done: Value }
  | { readonly fail: unknown }
  | { readonly retryInMs: number }

export interface Retry<Outcome, Value> {
  /** One attempt. Expected failures are outcomes; what it throws ends the loop. */
  attempt(number: number): Promise<Outcome>
  /** What follows from the outcome of attempt `number` (from 1). */
  decide(outcome: Outcome, number: number): RetryDecision<Value>
  readonly clock: Pick<Clock, 'sleep'>
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
