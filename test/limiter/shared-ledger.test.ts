/** What several processes on one file show, beyond the contract of all ledgers. Here they are neighbours on one manual clock. */
import { spawn, spawnSync } from 'node:child_process'
import { readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import Database from 'libsql'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { withFallback } from '../../src/limiter/fallback-ledger.js'
import { createLimiter, type Limiter } from '../../src/limiter/index.js'
import { budgetOf } from '../../src/limiter/shared-ledger.js'
import { RUNS_LIMIT } from '../../src/protocol/limits.js'
import { built } from '../support/built.js'
import { createManualClock } from '../support/clock.js'
import { temporaryFolder } from '../support/service.js'
import { until } from '../support/until.js'
import { createTestLedger } from './ledgers.js'
import { itKeepsTheLimit } from './window-tests.js'

const { requests: LIMIT, windowMs: WINDOW_MS } = RUNS_LIMIT

const DAMAGES: readonly (readonly [string, (path: string) => void])[] = [
  ['removed', (path) => rmSync(path)],
  ['emptied', (path) => truncateSync(path, 0)],
  ['overwritten', (path) => writeFileSync(path, 'not a database '.repeat(1_000))],
  ['cut', (path) => truncateSync(path, 5_000)],
  [
    'overwritten behind its first page',
    (path) =>
      writeFileSync(
        path,
        Buffer.concat([readFileSync(path).subarray(0, 4_096), Buffer.alloc(90_000, 'noise')]),
      ),
  ],
]

function createNeighbours(count: number) {
  const clock = createManualClock()
  const path = join(temporaryFolder(), 'limits.db')
  const limiters = Array.from({ length: count }, () =>
    createLimiter(RUNS_LIMIT, clock, { ledger: createTestLedger(clock, path) }),
  )
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
    budgetOf('https://a.example', 'key'),
    budgetOf('https://a.example', 'other key'),
    budgetOf('https://b.example', 'key'),
  ]
  expect(new Set(budgets).size).toBe(3)
  for (const budget of budgets) expect(budget).toMatch(/^[0-9a-f]{32}$/)
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
    const old = createLimiter(RUNS_LIMIT, before, { ledger: createTestLedger(before, path) })
    await fill(old)
    old.holdBack(30_000)
    const after = createManualClock()
    const limiter = createLimiter(RUNS_LIMIT, after, { ledger: createTestLedger(after, path) })
    await after.runUntil(limiter.acquire('create'))
    expect(after.monotonic()).toBe(WINDOW_MS)
  })
})

describe('real processes', () => {
  let sender: string
  beforeAll(async () => {
    sender = await built(new URL('./sender.ts', import.meta.url))
  })

  it('keep the limit together while their file is damaged, in each way', async () => {
    // Short, since nothing here depends on its length.
    const limit = { requests: LIMIT, windowMs: 200 }
    const path = join(temporaryFolder(), 'limits.db')
    const instants: number[] = []
    const children = Array.from({ length: 4 }, () =>
      spawn(process.execPath, [sender, path, JSON.stringify(limit)], {
        stdio: ['ignore', 'pipe', 'inherit'],
      }),
    )
    onTestFinished(() => {
      for (const child of children) child.kill('SIGKILL')
    })
    for (const { stdout } of children)
      createInterface(stdout).on('line', (line) => instants.push(Number(line)))
    for (const [name, damage] of DAMAGES) {
      const count = instants.length + 1.25 * LIMIT
      await until(`slots before the file is ${name}`, () => instants.length >= count || undefined)
      damage(path)
    }
    const count = instants.length + 3 * LIMIT
    await until('slots after all damages', () => instants.length >= count || undefined)
    const sorted = instants.toSorted((a, b) => a - b)
    const spans = sorted.slice(LIMIT).map((instant, index) => instant - (sorted[index] ?? 0))
    expect(Math.min(...spans)).toBeGreaterThanOrEqual(limit.windowMs)
  })

  it('that die holding slots give them back one window after the death is seen', async () => {
    const { clock, path, limiters } = createNeighbours(1)
    const { stdout, signal } = spawnSync(
      process.execPath,
      [sender, path, JSON.stringify(RUNS_LIMIT), String(LIMIT)],
      { encoding: 'utf8' },
    )
    expect({ slots: stdout.split('\n').length - 1, signal }).toEqual({ slots: LIMIT, signal: 'SIGKILL' })
    await clock.runUntil(limiters[0].acquire('create'))
    expect(clock.monotonic()).toBe(WINDOW_MS)
  })
})

describe('a ledger that stops working', () => {
  it('is left for the limit within the process, once and with a pause for what was granted', async () => {
    const clock = createManualClock()
    const path = join(temporaryFolder(), 'limits.db')
    const lost: unknown[] = []
    const limiter = createLimiter(RUNS_LIMIT, clock, {
      ledger: withFallback(createTestLedger(clock, path), {
        limit: RUNS_LIMIT,
        clock,
        onLost: (error) => lost.push(error),
      }),
    })
    const grant = await limiter.acquire('status')
    const database = new Database(path)
    database.exec('DROP TABLE places')
    database.close()
    grant.settle()
    await clock.runUntil(fill(limiter))
    expect(clock.monotonic()).toBe(WINDOW_MS)
    await clock.runUntil(limiter.acquire('create'))
    expect(clock.monotonic()).toBe(2 * WINDOW_MS)
    expect(lost).toHaveLength(1)
  })
})

describe.each(DAMAGES)('a ledger whose file is %s while it is in use', (_, damage) => {
  it('is replaced once: the new one grants nothing for one window, to any process', async () => {
    const { clock, path, limiters } = createNeighbours(3)
    const [first, second, third] = limiters
    for (const limiter of [first, second])
      for (let taken = 0; taken < LIMIT / 2; taken++) (await limiter.acquire('status')).settle()
    await clock.advance(1_000)
    damage(path)
    const leftAtMs = async (limiter: Limiter | undefined) => {
      await limiter?.acquire('status')
      return clock.monotonic()
    }
    const known = [leftAtMs(third), leftAtMs(first), leftAtMs(second)]
    // What the old file held of another key is unknown too.
    const otherKey = createLimiter(RUNS_LIMIT, clock, {
      ledger: createTestLedger(clock, path, 'another key'),
    })
    const atMs = Promise.all([...known, leftAtMs(otherKey)])
    await clock.runUntil(atMs)
    expect(await atMs).toEqual(Array.from({ length: 4 }, () => 1_000 + WINDOW_MS))
  })

  it('still counts the requests in flight, of each process, and settles those alone', async () => {
    const { clock, path, limiters } = createNeighbours(2)
    const [first, second] = limiters
    const inFlight = [await first.acquire('create'), await second.acquire('create')]
    damage(path)
    const next = first.acquire('status')
    await clock.advance(WINDOW_MS)
    ;(await next).settle()
    // The other process notices when its answer comes.
    for (const grant of inFlight) grant.settle()
    for (let taken = 0; taken < LIMIT - 3; taken++) await first.acquire('status')
    expect(clock.monotonic()).toBe(WINDOW_MS)
    await clock.runUntil(second.acquire('status'))
    expect(clock.monotonic()).toBe(2 * WINDOW_MS)
  })
})
