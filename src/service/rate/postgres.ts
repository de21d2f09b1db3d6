/**
 * The rate limiter of several nodes: the times of the last requests of each key are one row, which one statement reads and
 * writes, by the database's clock. A refused request writes nothing.
 */
import { type Clock, systemClock } from '../../host/clock.js'
import type { Queries, Statement } from '../store/postgres/database.js'
import type { RateLimiter } from './contract.js'

/** Microseconds. */
const NOW = '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint'

/**
 * $2: requests; $3: the window in microseconds. The request before the last $2 must be one window old. Also when it is more than
 * a window ahead: then the clock was set back.
 */
const TAKE: Statement = {
  name: 'takeRate',
  text: `
    INSERT INTO rates AS r (key, times, expires_at)
    SELECT $1, ARRAY[now], now + $3::bigint FROM (SELECT ${NOW} AS now) AS clock WHERE $2::integer > 0
    ON CONFLICT (key) DO UPDATE SET
      times = (${NOW} || r.times)[1:$2::integer], expires_at = excluded.expires_at
    WHERE r.times[$2::integer] IS NULL OR abs(${NOW} - r.times[$2::integer]) >= $3::bigint
    RETURNING 1`,
}

const REMOVE_IDLE: Statement = {
  name: 'removeIdleRates',
  text: `DELETE FROM rates WHERE expires_at < ${NOW}`,
}

const SWEEP_EVERY_MS = 60_000

export function createPostgresRateLimiter(
  { run }: Pick<Queries, 'run'>,
  clock: Pick<Clock, 'monotonic'> = systemClock,
): RateLimiter {
  let sweptAtMs = clock.monotonic()

  function sweep(): void {
    if (clock.monotonic() - sweptAtMs < SWEEP_EVERY_MS) return
    sweptAtMs = clock.monotonic()
    // The next sweep removes what this one could not.
    run(REMOVE_IDLE).catch(() => {})
  }

  return {
    async take(key, { requests, windowMs }) {
      sweep()
      return (await run(TAKE, key, requests, Math.round(windowMs * 1_000))) > 0
    },
  }
}
