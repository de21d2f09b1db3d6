/**
 * What the databases take a second: `npm run bench:store`. 16 callers add runs of one account, or of one account each, read runs,
 * claim and finish them, and count requests against a rate limit. The disk is waited for in SQLite alone: the PostgreSQL of the
 * tests runs without fsync. Prints a Markdown table.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../src/host/clock.js'
import type { RateLimiter } from '../src/service/rate/contract.js'
import { createMemoryRateLimiter } from '../src/service/rate/memory.js'
import type { Store } from '../src/service/store/contract.js'
import { openPostgresStore } from '../src/service/store/postgres/index.js'
import { openSqliteStore } from '../src/service/store/sqlite/index.js'
import { startPostgres } from '../test/support/postgres-server.js'
import { row } from './table.js'

const CALLERS = 16
const MS = 4_000
const INPUT = { prompt: 'a red fox in fresh snow, dawn, long shadows', quality: 'high' }

let made = 0

/** Calls a second, of all callers together. */
async function flood(work: (caller: number) => Promise<unknown>): Promise<number> {
  const until = performance.now() + MS
  let calls = 0
  await Promise.all(
    Array.from({ length: CALLERS }, async (_, caller) => {
      while (performance.now() < until) {
        await work(caller)
        calls++
      }
    }),
  )
  return Math.round((calls / MS) * 1_000)
}

async function measure(name: string, store: Store, rateLimiter: RateLimiter): Promise<void> {
  const accounts: { readonly accountId: number; readonly keyId: number }[] = []
  for (let at = 0; at < CALLERS; at++) {
    const accountId = await store.ensureAccount({ name: `account ${at}`, credits: 1e9, nowMs: 0 })
    accounts.push({
      accountId,
      keyId: await store.addKey({ accountId, hash: `h${at}`, prefix: 'rk_k', name: 'k', nowMs: 0 }),
    })
  }
  const [first] = accounts
  if (first === undefined) return
  const add = (owner: typeof first) =>
    store.addRun(
      { ...owner, id: `run_${++made}`, model: 'm', kind: 'image', input: INPUT, price: 2, createdAtMs: 1 },
      () => {},
    )
  const from = made + 1
  const creates = await flood((caller) => add(accounts[caller] ?? first))
  const ofOne = await flood(() => add(first))
  const statuses = await flood(() => store.findRun(`run_${from}`, first.accountId))
  await store.renewLease('me')
  const renders = await flood(async () => {
    const run = await store.claimRun('me', [], 1)
    if (run !== undefined) await store.finishRun({ id: run.id, owner: 'me', nowMs: 2 }, [])
  })
  const takes: number[] = []
  for (const requests of [20, 10_000]) {
    const limit = { requests, windowMs: 10_000 }
    takes.push(await flood((caller) => rateLimiter.take(`${requests} ${caller}`, limit)))
  }
  row(name, creates, ofOne, statuses, renders, ...takes)
}

row(
  '',
  'creates',
  'creates of one account',
  'statuses',
  'claimed and finished',
  'rate, 20 in 10 s',
  'rate, 10,000 in 10 s',
)
row('---', '--:', '--:', '--:', '--:', '--:', '--:')

const folder = mkdtempSync(join(tmpdir(), 'rushes-bench-'))
const sqlite = openSqliteStore(join(folder, 'service.db'))
await measure('SQLite', sqlite, createMemoryRateLimiter(systemClock))
await sqlite.close()
rmSync(folder, { recursive: true, force: true })

const server = await startPostgres()
const url = await server.createDatabase()
const postgres = await openPostgresStore(url)
await measure('PostgreSQL', postgres, postgres.rateLimiter)
await postgres.close()
await server.stop()
