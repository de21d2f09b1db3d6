import { expect, it } from 'vitest'
import { retryAfterMs } from '../../src/host/retry.js'

const NOW_MS = Date.UTC(2026, 0, 1)

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
])('Retry-After: %j is a wait of %i ms', (header, expected) => {
  expect(retryAfterMs(header, NOW_MS)).toBe(expected)
})
