/** The rate limits of the API keys that a command uses: shared by the processes of a machine, or by machines through Redis. */
import type { RateLimiter } from '../../client/index.js'
import { usageError } from '../../errors.js'
import type { Clock } from '../../host/clock.js'
import type { Ledger } from '../../limiter/index.js'
import type { RedisLedger } from '../../limiter/redis/redis-ledger.js'
import { RUNS_LIMIT } from '../../protocol/limits.js'

export interface KeyLimitsOptions {
  /** The state folder. */
  readonly folder: string
  readonly clock: Clock
  readonly isLocal: boolean
  readonly closers: (() => Promise<void>)[]
  /** The Redis server that shares the limit between machines. */
  limitsUrl(): Promise<string | undefined>
  warn(message: string): void
}

export interface KeyLimits {
  /** Shared with every other process that has the key; the key of `--local` belongs to this process alone. */
  limiterFor(address: string, apiKey: string): Promise<RateLimiter>
  /** How long requests are held back after a 429; 0 when they are not. */
  rateLimitedForMs(): number
}

export function createKeyLimits({ limitsUrl, isLocal, closers, ...state }: KeyLimitsOptions): KeyLimits {
  const { clock } = state
  let heldBackUntilMs = 0
  const notingHoldBack = (limiter: RateLimiter): RateLimiter => ({
    ...limiter,
    holdBack(ms) {
      heldBackUntilMs = Math.max(heldBackUntilMs, clock.monotonic() + ms)
      limiter.holdBack(ms)
    },
  })
  return {
    async limiterFor(address, apiKey) {
      const { createLimiter } = await import('../../limiter/index.js')
      if (isLocal) return createLimiter(RUNS_LIMIT, clock)
      const { openStateLedger } = await import('./state.js')
      const url = await limitsUrl()
      const keyed = { ...state, origin: new URL(address).origin, apiKey }
      const machine = openStateLedger(keyed)
      closers.push(async () => machine.close())
      const ledger =
        url === undefined ? machine : await openMachinesLimit({ ...keyed, url, machine, closers })
      return notingHoldBack(createLimiter(RUNS_LIMIT, clock, { ledger }))
    },
    rateLimitedForMs: () => Math.max(0, heldBackUntilMs - clock.monotonic()),
  }
}

interface MachinesLimitOptions extends Pick<KeyLimitsOptions, 'clock' | 'closers' | 'warn'> {
  readonly url: string
  readonly origin: string
  readonly apiKey: string
  /** The limit of this machine. */
  readonly machine: Ledger
}

/** The limit that machines share: RUSHES_LIMITS_URL. */
async function openMachinesLimit(options: MachinesLimitOptions): Promise<RedisLedger> {
  const { url, origin, apiKey, machine, clock, closers, warn } = options
  const [{ maskLimitsUrl, parseLimitsUrl }, { openRedisLedger }, { keyHashOf }] = await Promise.all([
    import('../../limiter/redis/limits-url.js'),
    import('../../limiter/redis/redis-ledger.js'),
    import('../../limiter/shared-ledger.js'),
  ])
  const address = parseLimitsUrl(url)
  if (address === undefined) throw usageError('limitsUrl is not a valid Redis URL.')
  const ledger = openRedisLedger({
    address,
    keyHash: keyHashOf(origin, apiKey),
    limit: RUNS_LIMIT,
    clock,
    machine,
    onLost: ({ message, isLasting }) =>
      warn(
        `Redis server ${maskLimitsUrl(url)}: ${message}. ` +
          `The rate limit is kept on this machine only${isLasting ? '' : ' until the server answers'}; ` +
          'other machines with this API key may cause 429 responses. ' +
          `Check RUSHES_LIMITS_URL (or limitsUrl) with \`rushes doctor\`.`,
      ),
  })
  closers.push(ledger.close)
  return ledger
}
