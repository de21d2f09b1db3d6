import { expect, test } from 'vitest'
import { systemClock } from '../../../src/host/clock.js'
import { createMemoryRateLimiter } from '../../../src/service/rules/rate.js'
import { rateLimiterContract } from '../../contract/rate-limiter.js'

function open() {
  let nowMs = 0
  const limiter = createMemoryRateLimiter({ ...systemClock, monotonic: () => nowMs })
  const advance = (ms: number) => {
    nowMs += ms
  }
  return { limiter, advance }
}

rateLimiterContract(open)

test('the rate limiter removes idle keys', async () => {
  const { limiter, advance } = open()
  const limit = { requests: 3, windowMs: 100 }
  for (let key = 0; key < 1_000; key++) await limiter.take([`key ${key}`], limit)
  expect(limiter.size).toBe(1_000)
  advance(10_000)
  await limiter.take(['another'], limit)
  expect(limiter.size).toBe(1)
})
