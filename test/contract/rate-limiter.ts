/** What every implementation of the rate limiter keeps to. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { RateLimiter } from '../../src/service/rules/rate.js'

const LIMIT = { requests: 3, windowMs: 100 }

export interface RateLimiterOnClock {
  readonly limiter: RateLimiter
  advance(ms: number): void
}

/** `open` gives a limiter that has seen no request. `numRuns`: of generated sequences of requests. */
export function rateLimiterContract(
  open: () => RateLimiterOnClock | Promise<RateLimiterOnClock>,
  { numRuns = 100 } = {},
): void {
  test('no window has more requests than the limit, and no request below it is refused', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(60), { maxLength: 60 }), async (pauses) => {
        const { limiter, advance } = await open()
        const granted: number[] = []
        let nowMs = 0
        for (const pause of pauses) {
          nowMs += pause
          advance(pause)
          const recent = granted.filter((at) => nowMs - at < LIMIT.windowMs).length
          const isFree = await limiter.take(['key'], LIMIT)
          expect(isFree).toBe(recent < LIMIT.requests)
          if (isFree) granted.push(nowMs)
        }
      }),
      { numRuns },
    )
  })

  test('a request with several keys counts for all of them, or for none if it is refused', async () => {
    const { limiter, advance } = await open()
    expect(await limiter.take(['address', 'email'], LIMIT)).toBe(true)
    for (let count = 0; count < 2; count++) expect(await limiter.take(['email'], LIMIT)).toBe(true)
    for (let count = 0; count < 5; count++)
      for (const keys of [
        ['address', 'email'],
        ['email', 'address'],
        ['email', 'another'],
      ])
        expect(await limiter.take(keys, LIMIT)).toBe(false)
    // None of the refused ones has counted.
    for (const isFree of [true, true, false]) expect(await limiter.take(['address'], LIMIT)).toBe(isFree)
    for (const isFree of [true, true, true, false])
      expect(await limiter.take(['another'], LIMIT)).toBe(isFree)
    advance(99)
    expect(await limiter.take(['address', 'email'], LIMIT)).toBe(false)
    advance(1)
    for (const isFree of [true, true, true, false])
      expect(await limiter.take(['address', 'email'], LIMIT)).toBe(isFree)
  })
}
