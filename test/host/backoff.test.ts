import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { jittered, retryAfterMs, stepOf } from '../../src/host/backoff.js'

const NOW_MS = Date.UTC(2026, 0, 1)
const MOST_MS = 60_000

describe('a ladder', () => {
  it('is climbed step by step, and its last step repeats', () => {
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
    [undefined, undefined],
    ['5', 5_000],
    [' 5 ', 5_000],
    ['0.5', 500],
    ['0', 0],
    ['61', 60_000],
    ['9'.repeat(400), 60_000],
    ['Thu, 01 Jan 2026 00:00:07 GMT', 7_000],
    ['Wed, 31 Dec 2025 23:59:00 GMT', 0],
    ['Fri, 01 Jan 2027 00:00:00 GMT', 60_000],
    ['', undefined],
    ['later', undefined],
    ['NaN', undefined],
    ['1e3', undefined],
    ['5 s', undefined],
    ['later 2099', undefined],
  ])('%j → %s', (header, expected) => {
    expect(retryAfterMs(header, NOW_MS, MOST_MS)).toBe(expected)
  })

  it('is never negative, never too long and never no number', () => {
    const text = fc.oneof(fc.string(), fc.date({ noInvalidDate: true }).map(String), fc.double().map(String))
    fc.assert(
      fc.property(text, (header) => {
        const waitMs = retryAfterMs(header, NOW_MS, MOST_MS)
        if (waitMs === undefined) return
        expect(waitMs).toBeGreaterThanOrEqual(0)
        expect(waitMs).toBeLessThanOrEqual(MOST_MS)
      }),
    )
  })
})
