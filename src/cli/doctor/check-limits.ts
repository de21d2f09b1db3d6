/** Checks the Redis server of RUSHES_LIMITS_URL with the script that the rate limit uses. It takes no slot. */
import { EXIT, messageOf } from '../../errors.js'
import { RUNS_LIMIT } from '../../protocol/limits.js'
import type { Context } from '../context/context.js'
import { asRushesError } from '../process/exit.js'
import { type Finding, failed, ok } from './finding.js'

const CHECK = 'rate limit'

/** Nothing where the setting is not set. */
export async function checkLimits(ctx: Context): Promise<readonly Finding[]> {
  let url: string | undefined
  try {
    url = await ctx.setting('limitsUrl')
  } catch (error) {
    const { message, hint, exitCode } = asRushesError(error)
    return [failed(CHECK, message, { advice: hint, exitCode })]
  }
  if (url === undefined) return []
  const { maskLimitsUrl, parseLimitsUrl } = await import('../../limiter/redis/limits-url.js')
  const { pingRedis } = await import('../../limiter/redis/redis-ledger.js')
  const address = parseLimitsUrl(url)
  if (address === undefined) return []
  const startedAtMs = ctx.clock.monotonic()
  try {
    await pingRedis(address, RUNS_LIMIT, ctx.interrupts.first)
    const took = Math.round(ctx.clock.monotonic() - startedAtMs)
    return [ok(CHECK, `shared between machines, ${maskLimitsUrl(url)} (${took} ms)`)]
  } catch (error) {
    ctx.interrupts.first.throwIfAborted()
    return [
      failed(CHECK, `${maskLimitsUrl(url)}: ${messageOf(error)}`, {
        exitCode: EXIT.network,
        advice:
          'Until it answers, the rate limit is kept on this machine only. Check the server and RUSHES_LIMITS_URL, or remove the setting.',
      }),
    ]
  }
}
