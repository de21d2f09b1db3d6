/** What several processes on one file show, beyond the contract of all ledgers. Here they are neighbours on one manual clock. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'libsql'
import { beforeAll, describe, expect, it } from 'vitest'
import { createLimiter, type Limiter } from '../../src/limiter/index.js'
import { keyHashOf, withFallback } from '../../src/limiter/shared-ledger.js'
import { RUNS_LIMIT } from '../../src/protocol/limits.js'
import { built } from '../support/built.js'
import { createManualClock } from '../support/clock.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { createTestLedger } from './ledgers.js'
import { itKeepsTheLimit } from './window-tests.js'

const { requests: LIMIT, windowMs: WINDOW_MS } = RUNS_LIMIT

function createNeighbours(count: number) {
  const clock = createManualClock()
  const path = join(temporaryFolder(), 'limits.db')
  const limiters = Array.from({ length: count }, () => createLimiter(clock, createTestLedger(clock, path)))
  return { clock, path, limiters: limiters as [Limiter, Limiter, ...Limiter[]] }
}

/** Takes all twenty slots and settles them at once. */
async function fill(limiter: Limiter): Promise<void> {
  for (let taken = 0; taken < LIMIT; taken++) (await limiter.acquire('status')).settle()
}

describe('eight processes together', () => {
  itKeepsTheLimit(() => createNeighbours(8), 15)
})

it('identifies a key by its service and its secret', () => {
  const budgets = [
    keyHashOf('https://a.example', 'key'),
    keyHashOf('https://a.example', 'other key'),
    keyHashOf('https://b.example', 'key'),
  ]
  expect(new Set(budgets).size).toBe(3)
  for (const keyHash of budgets) expect(keyHash).toMatch(/^[0-9a-f]{32}$/)
})

it('counts a service on loopback once, whatever it is called; another port or address is another service', () => {
  const keyHash = (origin: string) => keyHashOf(origin, 'key')
  for (const name of ['127.0.0.1', '[::1]']) {
    expect(keyHash(`http://${name}:8787`)).toBe(keyHash('http://localhost:8787'))
    expect(keyHash(`http://${name}`)).toBe(keyHash('http://localhost'))
    expect(keyHash(`http://${name}:8788`)).not.toBe(keyHash('http://localhost:8787'))
  }
  expect(keyHash('http://127.0.0.1.example.com')).not.toBe(keyHash('http://localhost.example.com'))
  expect(keyHash('http://127.0.0.2:8787')).not.toBe(keyHash('http://localhost:8787'))
})

describe('the order between processes', () => {
  it('takes turns: a process with many requests does not keep out one with a single request', async () => {
    const { clock, limiters } = createNeighbours(2)
    const [many, single] = limiters
    for (let taken = 0; taken < LIMIT; taken++) {
      const grant = await many.acquire('status')
      await clock.advance(100)
      grant.settle()
    }
    const order: string[] = []
    const ask = async (limiter: Limiter, name: string) => {
      const grant = await limiter.acquire('create')
      order.push(name)
      grant.settle()
    }
    const asked = Array.from({ length: LIMIT }, () => ask(many, 'one of many'))
    await clock.runUntil(Promise.all([...asked, ask(single, 'the single one')]))
    expect(order.indexOf('the single one')).toBeLessThanOrEqual(1)
  })

  it('gives up the turn of a waiter that is aborted', async () => {
    const { clock, path, limiters } = createNeighbours(1)
    await fill(limiters[0])
    const stop = new AbortController()
    const first = expect(limiters[0].acquire('create', stop.signal)).rejects.toThrow()
    stop.abort()
    await first
    const database = new Database(path)
    expect(database.prepare('SELECT count(*) AS waiting FROM waiters').get()).toMatchObject({ waiting: 0 })
    database.close()
    await clock.advance(0)
  })
})

describe('a restart of the machine', () => {
  it('costs one window at most: its clock begins anew, and what lies ahead is taken for now', async () => {
    const path = join(temporaryFolder(), 'limits.db')
    const before = createManualClock()
    await before.advance(5_000_000)
    const old = createLimiter(before, createTestLedger(before, path))
    await fill(old)
    old.holdBack(30_000)
    const after = createManualClock()
    const limiter = createLimiter(after, createTestLedger(after, path))
    await after.runUntil(limiter.acquire('create'))
    expect(after.monotonic()).toBe(WINDOW_MS)
  })
})

describe('real processes', () => {
  let sender: string
  beforeAll(async () => {
    sender = await built(new URL('./sender.ts', import.meta.url))
  })

  it('give their slots back one window after their death is noticed', async () => {
    const { clock, path, limiters } = createNeighbours(1)
    const { stdout, signal } = spawnSync(process.execPath, [sender, path, String(LIMIT)], {
      encoding: 'utf8',
    })
    expect({ slots: stdout.split('\n').length - 1, signal }).toEqual({ slots: LIMIT, signal: 'SIGKILL' })
    await clock.runUntil(limiters[0].acquire('create'))
    expect(clock.monotonic()).toBe(WINDOW_MS)
  })
})

it('counts the requests in flight of processes of which nothing is proven for five minutes', async () => {
  const { clock, path, limiters } = createNeighbours(1)
  for (let taken = 0; taken < LIMIT; taken++) await limiters[0].acquire('status')
  const database = new Database(path)
  // Half of them of an earlier version.
  database.exec(
    `UPDATE places SET started_at = CASE place % 2 WHEN 0 THEN '@0badf00d0badf00d' ELSE '1@0badf00d@deadbeef' END`,
  )
  database.close()
  const other = createLimiter(clock, createTestLedger(clock, path))
  const grantedAtMs = other.acquire('status').then(() => clock.monotonic())
  expect(await clock.runUntil(grantedAtMs)).toBe(300_000 + WINDOW_MS)
})

describe.each<readonly [string, (path: string) => void]>([
  ['removed', (path) => rmSync(path)],
  ['emptied', (path) => truncateSync(path, 0)],
  ['overwritten', (path) => writeFileSync(path, 'not a database '.repeat(1_000))],
  ['cut', (path) => truncateSync(path, 5_000)],
  [
    'replaced by a folder',
    (path) => {
      rmSync(path)
      mkdirSync(path)
    },
  ],
  [
    'full',
    (path) => {
      const database = new Database(path)
      for (const change of ['INSERT', 'UPDATE', 'DELETE'])
        database.exec(
          `CREATE TRIGGER full_${change} BEFORE ${change} ON places BEGIN SELECT RAISE(ABORT, 'full'); END`,
        )
      database.close()
    },
  ],
])('a ledger whose file is %s while it is in use', (_, damage) => {
  it('fall back to the limit within the process once, with a pause of one window', async () => {
    const clock = createManualClock()
    const path = join(temporaryFolder(), 'limits.db')
    const lost: unknown[] = []
    const ledger = withFallback(() => createTestLedger(clock, path), {
      clock,
      onLost: (error) => lost.push(error),
    })
    const limiter = createLimiter(clock, ledger)
    const grant = await limiter.acquire('status')
    await clock.advance(1_000)
    damage(path)
    grant.settle()
    await clock.runUntil(fill(limiter))
    expect(clock.monotonic()).toBe(1_000 + WINDOW_MS)
    await clock.runUntil(limiter.acquire('create'))
    expect(clock.monotonic()).toBe(1_000 + 2 * WINDOW_MS)
    expect(lost).toHaveLength(1)
  })
})

// Which damage is noticed when a file is opened: test/journal/journal.test.ts.
it('a ledger whose file was damaged before is replaced once: the new one grants nothing for one window, to any process and of any key', async () => {
  const { clock, path, limiters } = createNeighbours(1)
  await fill(limiters[0])
  writeFileSync(path, 'not a database '.repeat(1_000))
  const next = (keyHash: string) =>
    createLimiter(clock, createTestLedger(clock, path, keyHash))
      .acquire('status')
      .then(() => clock.monotonic())
  const atMs = Promise.all([next('a key'), next('a key'), next('another key')])
  await clock.runUntil(atMs)
  expect(await atMs).toEqual([WINDOW_MS, WINDOW_MS, WINDOW_MS])
})
