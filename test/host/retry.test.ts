import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  jittered,
  type Retry,
  type RetryDecision,
  retry,
  retryAfterMs,
  stepOf,
} from '../../src/host/retry.js'
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

const NOW_MS = Date.UTC(2026, 0, 1)
const MOST_MS = 60_000

describe('a ladder', () => {
  it('gives one step after the other, and repeats the last one', () => {
    expect([1, 2, 3, 4, 99].map((n) => stepOf([1, 2, 4], n))).toEqual([1, 2, 4, 4, 4])
    expect(stepOf([], 1)).toBe(0)
  })
})

describe('jitter', () => {
  it('stays within its range, and reaches both ends', () => {
    expect([0, 0.5, 0.999_999].map((dice) => jittered({ min: 1_000, max: 2_000 }, dice))).toEqual([
      1_000, 1_500, 2_000,
    ])
  })
})

describe('Retry-After', () => {
  it.each([
    [undefined, 0],
    ['5', 5_000],
    [' 5 ', 5_000],
    ['0.5', 500],
    ['0', 0],
    ['61', 60_000],
    ['9'.repeat(400), 60_000],
    ['Thu, 01 Jan 2026 00:00:07 GMT', 7_000],
    ['Wed, 31 Dec 2025 23:59:00 GMT', 0],
    ['Fri, 01 Jan 2027 00:00:00 GMT', 60_000],
    ['', 0],
    ['later', 0],
    ['NaN', 0],
    ['1e3', 0],
    ['5 s', 0],
    ['later 2099', 0],
  ])('%j → %s', (header, expected) => {
    expect(retryAfterMs(header, NOW_MS)).toBe(expected)
  })

  it('always gives a number from 0 to the longest wait', () => {
    const text = fc.oneof(fc.string(), fc.date({ noInvalidDate: true }).map(String), fc.double().map(String))
    fc.assert(
      fc.property(text, (header) => {
        const waitMs = retryAfterMs(header, NOW_MS)
        expect(waitMs).toBeGreaterThanOrEqual(0)
        expect(waitMs).toBeLessThanOrEqual(MOST_MS)
      }),
    )
  })
})
