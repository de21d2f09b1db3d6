/** The rate limits of the API keys that a command uses. */
import type { RateLimiter } from '../../client/index.js'
import type { Clock } from '../../host/clock.js'
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
      const budget = { ...state, origin: new URL(address).origin, apiKey }
      const machine = openStateLedger(budget)
      closers.push(async () => machine.close())
      const openShared = url && (await import('./machines-ledger.js')).openMachinesLedger
      const ledger = openShared ? openShared({ ...budget, url, machine, closers }) : machine
      return notingHoldBack(createLimiter(RUNS_LIMIT, clock, { ledger }))
    },
    rateLimitedForMs: () => Math.max(0, heldBackUntilMs - clock.monotonic()),
  }
}
