/** What several processes on one file show, beyond the contract of all ledgers. Here they are neighbours on one manual clock. */
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import Database from 'libsql'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { withFallback } from '../../src/limiter/fallback-ledger.js'
import { createLimiter, type Limiter } from '../../src/limiter/index.js'
import { keyHashOf } from '../../src/limiter/shared-ledger.js'
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

it('counts the requests in flight of processes of which nothing is proven for five minutes', async () => {
  const { clock, path, limiters } = createNeighbours(1)
  for (let taken = 0; taken < LIMIT; taken++) await limiters[0].acquire('status')
  const database = new Database(path)
  // Half of them of an earlier version.
  database.exec(
    `UPDATE places SET started_at = CASE place % 2 WHEN 0 THEN '@0badf00d0badf00d' ELSE '1@0badf00d@deadbeef' END`,
  )
  database.close()
  const other = createLimiter(RUNS_LIMIT, clock, { ledger: createTestLedger(clock, path) })
  const grantedAtMs = other.acquire('status').then(() => clock.monotonic())
  expect(await clock.runUntil(grantedAtMs)).toBe(300_000 + WINDOW_MS)
})

describe('a ledger that stops working', () => {
  it('is left for the limit within the process, once and with a pause for what was granted', async () => {
    const clock = createManualClock()
    const path = join(temporaryFolder(), 'limits.db')
    const lost: unknown[] = []
    const limiter = createLimiter(RUNS_LIMIT, clock, {
      ledger: withFallback(() => createTestLedger(clock, path), {
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

/** Makes the file unusable, and returns what makes it usable again. */
const FAULTS: readonly (readonly [string, (path: string) => () => void])[] = [
  [
    'cannot be written, as on a full disk',
    (path) => {
      const run = (sql: string) => {
        const database = new Database(path)
        database.exec(sql)
        database.close()
      }
      const changes = ['places', 'waiters', 'budgets'].flatMap((table) =>
        ['INSERT', 'UPDATE', 'DELETE'].map((change) => [`full_${table}_${change}`, change, table] as const),
      )
      for (const [name, change, table] of changes)
        run(`CREATE TRIGGER ${name} BEFORE ${change} ON ${table} BEGIN SELECT RAISE(ABORT, 'full'); END`)
      return () => {
        for (const [name] of changes) run(`DROP TRIGGER ${name}`)
      }
    },
  ],
  [
    'is replaced by a folder',
    (path) => {
      rmSync(path)
      mkdirSync(path)
      return () => rmdirSync(path)
    },
  ],
]

describe.each(FAULTS)('a ledger whose file %s for a while', (_, breakFile) => {
  function createSession() {
    const clock = createManualClock()
    const path = join(temporaryFolder(), 'limits.db')
    const lost: unknown[] = []
    const options = { limit: RUNS_LIMIT, clock, onLost: (error: unknown) => void lost.push(error) }
    const ledger = withFallback(() => createTestLedger(clock, path), options)
    return { clock, path, lost, ledger, limiter: createLimiter(RUNS_LIMIT, clock, { ledger }) }
  }

  it('keeps the limit before, meanwhile and afterwards, and warns at each loss once', async () => {
    const { clock, path, lost, limiter } = createSession()
    const countedAtMs: number[] = []
    const send = async (number: number) => {
      await clock.sleep(number * 150)
      const grant = await limiter.acquire('status')
      countedAtMs.push(clock.monotonic())
      await clock.sleep((number % 7) * 300)
      countedAtMs[countedAtMs.length - 1] = clock.monotonic()
      grant.settle()
    }
    const sent = Promise.all(Array.from({ length: 300 }, (_each, number) => send(number)))
    for (const atMs of [15_000, 70_000]) {
      await clock.advance(atMs - clock.monotonic())
      const repair = breakFile(path)
      await clock.advance(25_000)
      repair()
    }
    await clock.runUntil(sent)
    const instants = countedAtMs.toSorted((a, b) => a - b)
    for (const [index, instant] of instants.slice(LIMIT).entries())
      expect(instant - (instants[index] ?? 0)).toBeGreaterThanOrEqual(WINDOW_MS)
    expect(lost).toHaveLength(2)
  })

  it('is used again within one window, and then shows other processes what was granted meanwhile', async () => {
    const { clock, path, limiter } = createSession()
    const before = await limiter.acquire('create')
    const repair = breakFile(path)
    before.settle()
    const inFlight = await clock.runUntil(limiter.acquire('create'))
    repair()
    await clock.advance(WINDOW_MS)
    for (const _each of [1, 2]) (await clock.runUntil(limiter.acquire('status'))).settle()
    const other = createTestLedger(clock, path)
    // One in flight, two just answered, and the one whose answer could not be written, from the return on.
    expect(other.usedSlots()).toBeGreaterThanOrEqual(3)
    await clock.advance(WINDOW_MS)
    expect(other.usedSlots()).toBe(1)
    inFlight.settle()
    await clock.advance(WINDOW_MS)
    expect(other.usedSlots()).toBe(0)
  })

  it('learns of a 429 that came meanwhile', async () => {
    const { clock, path, limiter } = createSession()
    ;(await limiter.acquire('create')).settle()
    const repair = breakFile(path)
    const granted = limiter.acquire('create')
    await clock.advance(WINDOW_MS - 1)
    limiter.holdBack(30_000)
    repair()
    await clock.advance(15_000)
    const atMs = createLimiter(RUNS_LIMIT, clock, { ledger: createTestLedger(clock, path) })
      .acquire('status')
      .then(() => clock.monotonic())
    await clock.runUntil(Promise.all([granted, atMs]))
    expect(await atMs).toBe(WINDOW_MS - 1 + 30_000)
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
