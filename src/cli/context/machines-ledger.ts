/** The rate limit of a key that machines share: RUSHES_LIMITS_URL. */
import { usageError } from '../../errors.js'
import type { Clock } from '../../host/clock.js'
import type { Ledger } from '../../limiter/index.js'
import { maskLimitsUrl, parseLimitsUrl } from '../../limiter/redis/limits-url.js'
import { openRedisLedger, type RedisLedger } from '../../limiter/redis/redis-ledger.js'
import { budgetOf } from '../../limiter/shared-ledger.js'
import { RUNS_LIMIT } from '../../protocol/limits.js'

export interface MachinesLedgerOptions {
  readonly url: string
  readonly origin: string
  readonly apiKey: string
  /** The limit of this machine. */
  readonly machine: Ledger
  readonly clock: Clock
  readonly closers: (() => Promise<void>)[]
  warn(message: string): void
}

export function openMachinesLedger(options: MachinesLedgerOptions): RedisLedger {
  const { url, origin, apiKey, machine, clock, closers, warn } = options
  const address = parseLimitsUrl(url)
  if (address === undefined) throw usageError('limitsUrl is not a valid Redis URL.')
  const ledger = openRedisLedger({
    address,
    budget: budgetOf(origin, apiKey),
    limit: RUNS_LIMIT,
    clock,
    machine,
    onLost: ({ message, isLasting }) =>
      warn(
        `Redis server ${maskLimitsUrl(url)}: ${message}. The rate limit is kept on this machine only${isLasting ? '' : ' until the server answers'}; other machines with this API key may cause 429 responses. Check RUSHES_LIMITS_URL (or limitsUrl) with \`rushes doctor\`.`,
      ),
  })
  closers.push(ledger.close)
  return ledger
}
