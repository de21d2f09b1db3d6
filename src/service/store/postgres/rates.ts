/**
 * The rate limiter for several nodes. One row per key has the times of its last requests. One statement reads and
 * writes the row, by the database's clock. A refused request writes nothing. A crash of the server empties the table.
 */
import { type Clock, systemClock } from '../../../host/clock.js'
import type { RateLimit, RateLimiter } from '../../rules/rate.js'
import type { Database } from '../sql.js'

/** Current time in microseconds. */
const NOW = '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint'

/**
 * `requests`: maximum number of requests; `windowUs`: window in microseconds. The first of as many last requests must be at least one window old.
 * If its time is at least one window ahead, the clock was set back, and it does not count.
 */
const TAKE = `
  INSERT INTO rates AS r (key, times, expires_at)
  SELECT :key, ARRAY[now], now + :windowUs::bigint FROM (SELECT ${NOW} AS now) AS clock WHERE :requests::integer > 0
  ON CONFLICT (key) DO UPDATE SET
    times = (${NOW} || r.times)[1 : :requests::integer], expires_at = excluded.expires_at
  WHERE r.times[:requests::integer] IS NULL OR abs(${NOW} - r.times[:requests::integer]) >= :windowUs::bigint
  RETURNING 1`

/** Bounded, so that no sweep reaches the time limit of a statement. */
const REMOVE_IDLE = `
  DELETE FROM rates WHERE key IN (
    SELECT key FROM rates WHERE expires_at < ${NOW} LIMIT 10000 FOR UPDATE SKIP LOCKED
  )`

const SWEEP_EVERY_MS = 60_000
/** Thrown to roll back the transaction, so that a refused request counts for none of its keys. */
class Refused extends Error {}

export function createPostgresRateLimiter(
  { run, repeatable }: Database,
  clock: Clock = systemClock,
): RateLimiter {
  let sweptAtMs = clock.monotonic()

  /** If it fails, a later call sweeps again. */
  function sweep(): void {
    if (clock.monotonic() - sweptAtMs < SWEEP_EVERY_MS) return
    sweptAtMs = clock.monotonic()
    run(REMOVE_IDLE).catch(() => {})
  }

  return {
    async take(keys, { requests, windowMs }: RateLimit) {
      sweep()
      try {
        return await repeatable(async (tx) => {
          // Use the same order for all requests, so that two requests do not wait for each other's rows.
          for (const key of [...new Set(keys)].sort()) {
            const values = { key, requests, windowUs: Math.round(windowMs * 1_000) }
            if ((await tx.run(TAKE, values)) === 0) throw new Refused()
          }
          return true
        })
      } catch (error) {
        if (error instanceof Refused) return false
        throw error
      }
    },
  }
}
