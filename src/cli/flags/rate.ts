/** Rates as people write them: `100/10s`. */
import { usageError } from '../../errors.js'
import type { RateLimit } from '../../service/rate/contract.js'
import { parseDuration } from './duration.js'

export { formatRate } from '../../service/rate/rate-text.js'

/** A rate limiter keeps the time of each request in the window, so this bounds its memory per key. */
const MAX_REQUESTS = 10_000
const MIN_WINDOW_MS = 100
const MAX_WINDOW_MS = 3_600_000

/** Throws `usage` that names `what`. */
export function parseRate(text: string, what: string): RateLimit {
  const [, count = '', window = ''] = /^\s*(\d+)\s*\/\s*(.+)$/.exec(text) ?? []
  if (count === '') throw usageError(`${what}: "${text}" is not a valid rate.`, 'Examples: 100/10s, 600/1m.')
  const requests = Number(count)
  const windowMs = parseDuration(window, what, 'Examples: 100/10s, 600/1m.')
  if (requests < 1 || requests > MAX_REQUESTS || windowMs < MIN_WINDOW_MS || windowMs > MAX_WINDOW_MS)
    throw usageError(
      `${what}: ${text} is out of range.`,
      `Use 1 to ${MAX_REQUESTS} requests in ${MIN_WINDOW_MS}ms to 1h.`,
    )
  return { requests, windowMs }
}
