import { describe, expect, it } from 'vitest'
import { type Retry, type RetryDecision, retry } from '../../src/host/retry.js'
import { createManualClock } from '../support/clock.js'

const createBench = (
  verdicts: readonly RetryDecision<string>[],
  more: Partial<Retry<number, string>> = {},
) => {
  const clock = createManualClock()
  const tries: [number, number][] = []
  const policy: Retry<number, string> = {
    clock,
    async attempt(number) {
      tries.push([number, clock.monotonic()])
      return number * 10
    },
    decide: (_, number) => verdicts[number - 1] ?? { fail: new Error('one try too many') },
    ...more,
  }
  return { clock, tries, policy }
}

describe('the retry loop', () => {
  it('ends with what is done', async () => {
    const { clock, tries, policy } = createBench([{ done: 'yes' }])
    expect(await clock.runUntil(retry(policy))).toBe('yes')
    expect(tries).toEqual([[1, 0]])
  })

  it('waits as long as it is told between two tries, and tells of it before', async () => {
    const told: [number, number][] = []
    const { clock, tries, policy } = createBench([{ retryInMs: 100 }, { retryInMs: 5 }, { done: 'yes' }], {
      onRetry: (outcome, waitMs) => told.push([outcome, waitMs]),
    })
    expect(await clock.runUntil(retry(policy))).toBe('yes')
    expect(tries).toEqual([
      [1, 0],
      [2, 100],
      [3, 105],
    ])
    expect(told).toEqual([
      [10, 100],
      [20, 5],
    ])
  })

  it('throws the failure as it is', async () => {
    const failure = { any: 'thing' }
    const { clock, policy } = createBench([{ retryInMs: 1 }, { fail: failure }])
    await expect(clock.runUntil(retry(policy))).rejects.toBe(failure)
  })

  it('ends with what a try throws', async () => {
    const bug = new TypeError('a bug')
    const { clock, policy } = createBench([], { attempt: () => Promise.reject(bug) })
    await expect(clock.runUntil(retry(policy))).rejects.toBe(bug)
  })

  it('makes no try when the signal was first', async () => {
    const reason = new Error('enough')
    const { policy, tries } = createBench([{ done: 'yes' }], { signal: AbortSignal.abort(reason) })
    await expect(retry(policy)).rejects.toBe(reason)
    expect(tries).toEqual([])
  })

  it('leaves its sleep with the reason of the signal', async () => {
    const stop = new AbortController()
    const reason = new Error('enough')
    const { clock, policy, tries } = createBench([{ retryInMs: 1_000 }], { signal: stop.signal })
    const ended = expect(retry(policy)).rejects.toBe(reason)
    await clock.advance(500)
    stop.abort(reason)
    await ended
    expect([tries.length, clock.sleepers]).toEqual([1, 0])
  })
})
