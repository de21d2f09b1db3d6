/** Ledgers on a real Redis server, each of a machine of its own. */
import { randomUUID } from 'node:crypto'
import { onTestFinished } from 'vitest'
import { parseLimitsUrl, type RedisAddress } from '../../src/limiter/redis/limits-url.js'
import { openRedisLedger, type RedisLedger, redisKeyOf } from '../../src/limiter/redis/redis-ledger.js'
import type { LedgerBench } from '../contract/ledger.js'
import { createManualClock } from '../support/clock.js'
import { clientOf } from '../support/redis.js'

/** The server's clock cannot be moved, so what is stored is made older instead. */
const AGE = `local fields = redis.call('HGETALL', KEYS[1])
for at = 1, #fields, 2 do
  local older = string.gsub(fields[at + 1], '%d+', function(us) return string.format('%.0f', us - ARGV[1]) end)
  redis.call('HSET', KEYS[1], fields[at], older)
end`
/** Shorter than a lease, which is renewed between two steps. */
const STEP_MS = 5_000

export interface RedisBench extends LedgerBench {
  open(key?: string): RedisLedger
  /** The reasons why the server was lost, of all ledgers. */
  readonly lost: readonly string[]
  /** What the server has of a key, by field. */
  stored(key?: string): Promise<Readonly<Record<string, string>>>
}

export const addressOf = (url: string): RedisAddress => {
  const address = parseLimitsUrl(url)
  if (address === undefined) throw new Error('not a Redis URL')
  return address
}

export function createRedisBench(url: string): RedisBench {
  const clock = createManualClock()
  const client = clientOf(url)
  const test = randomUUID()
  const keys = new Set<string>()
  const lost: string[] = []
  const keyHashOf = (key: string) => `test-${test}-${key}`
  return {
    lost,
    open(key = 'a key') {
      keys.add(redisKeyOf(keyHashOf(key)))
      const ledger = openRedisLedger({
        address: addressOf(url),
        keyHash: keyHashOf(key),
        clock,
        onLost: ({ message }) => lost.push(message),
      })
      onTestFinished(() => ledger.close())
      return ledger
    },
    async advance(ms) {
      // What the ledgers have sent before is then carried out.
      for (let turn = 0; turn < 2; turn++) await client.ping()
      for (let rest = ms; rest > 0; rest -= STEP_MS) {
        const step = Math.min(rest, STEP_MS)
        for (const key of keys) await client.eval(AGE, 1, key, step * 1_000)
        await clock.advance(step)
      }
    },
    stored: (key = 'a key') => client.hgetall(redisKeyOf(keyHashOf(key))),
  }
}
