/**
 * The rate limit that machines share: `REDIS_URL=redis://127.0.0.1:6379 npm run bench:limits`. What a slot costs beside the
 * other ledgers, how many slots a server grants, and what a server that is away costs a command. Prints Markdown tables.
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../src/host/clock.js'
import type { Ledger, RemoteLedger } from '../src/limiter/index.js'
import { createMemoryLedger } from '../src/limiter/memory-ledger.js'
import { parseLimitsUrl } from '../src/limiter/redis/limits-url.js'
import { openRedisLedger } from '../src/limiter/redis/redis-ledger.js'
import { openSharedLedger } from '../src/limiter/shared-ledger.js'
import { RUNS_LIMIT as limit } from '../src/protocol/limits.js'
import { median, quantile } from './table.js'

const ROUNDS = 2_000
const url = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379'
const clock = systemClock
const folder = mkdtempSync(join(tmpdir(), 'rushes-limits-'))
const path = join(folder, 'limits.db')

function openRedis(address: string, budget: string, onLost = (message: string): void => fail(message)) {
  const parsed = parseLimitsUrl(address)
  if (parsed === undefined) throw new Error(`${address} is not a Redis URL`)
  return openRedisLedger({ address: parsed, budget, limit, clock, onLost: ({ message }) => onLost(message) })
}

const fail = (message: string): void => {
  console.error(`${url}: ${message}`)
  process.exit(1)
}

/** Milliseconds for each slot that is taken and freed, while another nineteen are taken. */
async function measure(ledger: Ledger | RemoteLedger): Promise<readonly number[]> {
  const taken: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const startedAtMs = performance.now()
    const slot = await ledger.take('status')
    if (!('cancel' in slot)) throw new Error('no slot')
    slot.cancel()
    taken.push(performance.now() - startedAtMs)
  }
  return taken
}

async function fill(ledger: Ledger | RemoteLedger): Promise<void> {
  for (let count = 1; count < limit.requests; count++) await ledger.take('status')
}

const shared = openSharedLedger({ path, budget: 'bench', limit, clock })
const redis = openRedis(url, 'bench-one')
console.log('| ledger | median ms to take a slot | p99 ms |\n|---|--:|--:|')
for (const [name, ledger] of [
  ['process', createMemoryLedger(limit, clock)],
  ['machine (SQLite)', shared],
  ['machines (Redis)', redis],
] as const) {
  await fill(ledger)
  const times = await measure(ledger)
  console.log(`| ${name} | ${median(times).toFixed(3)} | ${quantile(times, 0.99).toFixed(3)} |`)
}

const ledgers = Array.from({ length: 16 }, (_, at) => openRedis(url, `bench-${at}`))
for (const ledger of ledgers) await fill(ledger)
const startedAtMs = performance.now()
await Promise.all(ledgers.map(measure))
const seconds = (performance.now() - startedAtMs) / 1_000
console.log(
  `\n16 keys at once, from one process: ${Math.round((ledgers.length * ROUNDS) / seconds)} slots a second`,
)

console.log('\n| server | ms until the first slot | the next 19 |\n|---|--:|--:|')
const silent = createServer(() => {}).listen(0, '127.0.0.1')
await once(silent, 'listening')
for (const [name, address] of [
  ['answers', url],
  ['refuses the connection', 'redis://127.0.0.1:1'],
  ['never answers', `redis://127.0.0.1:${(silent.address() as AddressInfo).port}`],
] as const) {
  const openedAtMs = performance.now()
  const ledger = openRedis(address, `bench-first-${Date.now()}`, () => {})
  await ledger.take('create')
  const firstAtMs = performance.now()
  await fill(ledger)
  const endedAtMs = performance.now()
  console.log(`| ${name} | ${(firstAtMs - openedAtMs).toFixed(0)} | ${(endedAtMs - firstAtMs).toFixed(1)} |`)
  await ledger.close()
}

for (const ledger of [redis, ...ledgers]) await ledger.close()
shared.close()
rmSync(folder, { recursive: true })
process.exit(0)
