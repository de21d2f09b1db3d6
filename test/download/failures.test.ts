import { describe, expect, it } from 'vitest'
import { AttemptFailed, failureOfStatus, mayHaveExpired, waitAfter } from '../../src/download/failures.js'

const failure = (more = {}) => new AttemptFailed('the connection broke', { isRetryable: true, ...more })

it('the wait after a failed attempt varies by a quarter at random', () => {
  expect([0, 0.999999].map((random) => waitAfter(failure(), 3, random))).toEqual([3_000, 5_000])
})

describe('a status', () => {
  it.each([
    [200 + 4, false, false],
    [206, false, false],
    [403, false, true],
    [404, false, true],
    [408, true, false],
    [410, false, true],
    [429, true, false],
    [500, true, false],
    [503, true, false],
  ])('%i: again %s, expired %s', (status, again, expired) => {
    const told = failureOfStatus(status, 7_000)
    expect(told).toMatchObject({ isRetryable: again, status, message: `the host answered ${status}` })
    expect(mayHaveExpired(told)).toBe(expired)
    expect(told.retryAfterMs).toBe(status === 429 || status === 503 ? 7_000 : 0)
  })
})

it('says nothing that could drive a terminal', () => {
  expect(new AttemptFailed('\u001b[31mred\nline', { isRetryable: true }).message).toBe('[31mred line')
})
