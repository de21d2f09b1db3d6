import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createRateCounter } from '../../../src/service/rules/rate-counter.js'

const LIMIT = { requests: 3, windowMs: 100 }

test('in no window of its length are there more than the limit, and nobody is refused below it', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(60), { maxLength: 100 }), (pauses) => {
      const counter = createRateCounter(LIMIT)
      const granted: number[] = []
      let nowMs = 0
      for (const pause of pauses) {
        nowMs += pause
        const recent = granted.filter((at) => nowMs - at < LIMIT.windowMs).length
        const free = counter.take('key', nowMs)
        expect(free).toBe(recent < LIMIT.requests)
        if (free) granted.push(nowMs)
      }
    }),
  )
})

test('idle keys are forgotten', () => {
  const counter = createRateCounter(LIMIT)
  for (let key = 0; key < 1_000; key++) counter.take(`key ${key}`, 0)
  expect(counter.size).toBe(1_000)
  counter.take('another', 100)
  expect(counter.size).toBe(1)
})
