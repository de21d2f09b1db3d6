/**
 * The rate limits of the API keys that a command uses. All processes of a machine share a limit; Redis can share it
 * between machines.
 */
import type { RateLimiter } from '../../client/index.js'
import { usageError } from '../../errors.js'
import type { Ledger } from '../../limiter/index.js'
import { maskLimitsUrl, parseLimitsUrl } from '../../limiter/redis/limits-url.js'
import type { RedisLedger } from '../../limiter/redis/redis-ledger.js'
import type { StateLedgerOptions, StateOptions } from './state.js'

export interface KeyLimitsOptions extends StateOptions {
  readonly isLocal: boolean
  readonly closers: (() => Promise<void>)[]
  /** Returns the URL of the Redis server that shares the limit between machines. */
  limitsUrl(): Promise<string | undefined>
}

export interface KeyLimits {
  /**
   * Returns the rate limiter of a key, which all processes with this key share. With `--local` only this process uses
   * the key, so its limiter is not shared.
   */
  limiterFor(address: string, apiKey: string): Promise<RateLimiter>
  /** Remaining time in ms that requests are held back after a 429. Returns 0 when they are not held back. */
  rateLimitedForMs(): number
}

export function createKeyLimits({ limitsUrl, isLocal, closers, ...state }: KeyLimitsOptions): KeyLimits {
  const { clock } = state
  let heldBackUntilMs = 0
  const recordHoldBack = (limiter: RateLimiter): RateLimiter => ({
    ...limiter,
    holdBack(ms) {
      heldBackUntilMs = Math.max(heldBackUntilMs, clock.monotonic() + ms)
      limiter.holdBack(ms)
    },
  })
  return {
    async limiterFor(address, apiKey) {
      const { createLimiter } = await import('../../limiter/index.js')
      if (isLocal) return createLimiter(clock)
      const { openStateLedger } = await import('./state.js')
      const { keyHashOf } = await import('../../limiter/shared-ledger.js')
      const url = await limitsUrl()
      const keyOptions = { ...state, keyHash: keyHashOf(new URL(address).origin, apiKey) }
      const machine = openStateLedger(keyOptions)
      closers.push(async () => machine.close())
      const ledger =
        url === undefined ? machine : await openMachinesLimit({ ...keyOptions, url, machine, closers })
      return recordHoldBack(createLimiter(clock, ledger))
    },
    rateLimitedForMs: () => Math.max(0, heldBackUntilMs - clock.monotonic()),
  }
}

interface MachinesLimitOptions extends StateLedgerOptions {
  readonly closers: (() => Promise<void>)[]
  readonly url: string
  /** Ledger that the processes of this machine share. */
  readonly machine: Ledger
}

/** Opens the ledger that several machines share through RUSHES_LIMITS_URL. */
async function openMachinesLimit(options: MachinesLimitOptions): Promise<RedisLedger> {
  const { url, keyHash, machine, clock, closers, warn } = options
  const { openRedisLedger } = await import('../../limiter/redis/redis-ledger.js')
  const address = parseLimitsUrl(url)
  if (address === undefined) throw usageError('limitsUrl is not a valid Redis URL.')
  const ledger = openRedisLedger({
    address,
    keyHash,
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
