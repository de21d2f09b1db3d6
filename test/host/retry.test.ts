import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { retryAfterMs } from '../../src/host/retry.js'

const NOW_MS = Date.UTC(2026, 0, 1)
const MOST_MS = 60_000

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
