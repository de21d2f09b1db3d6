/** What only several processes on one file show. Here they are neighbours in one process, on one manual clock. */
import { spawn, spawnSync } from 'node:child_process'
import { readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import fc from 'fast-check'
import Database from 'libsql'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { withFallback } from '../../src/limiter/fallback-ledger.js'
import { createLimiter, type Limiter, type Purpose } from '../../src/limiter/index.js'
import { budgetOf } from '../../src/limiter/shared-ledger.js'
import { RUNS_LIMIT } from '../../src/protocol/limits.js'
import { built } from '../support/built.js'
import { createManualClock, type ManualClock } from '../support/clock.js'
import { temporaryFolder } from '../support/service.js'
import { createTestLedger } from './ledgers.js'

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

/** Takes all twenty places and settles them at once. */
async function fill(limiter: Limiter): Promise<void> {
  for (let taken = 0; taken < LIMIT; taken++) (await limiter.acquire('status')).settle()
}

/** Takes all twenty places, and settles one every 100 ms: they become free one by one. */
async function fillOneByOne(clock: ManualClock, limiter: Limiter): Promise<void> {
  for (let taken = 0; taken < LIMIT; taken++) {
    const grant = await limiter.acquire('status')
    await clock.advance(100)
    grant.settle()
  }
}

interface Asked {
  readonly limiter: Limiter
  readonly name: string
  readonly purpose: Purpose
}

/** The names in the order in which they were let through, each settled at once. */
async function orderOf(clock: ManualClock, asked: readonly Asked[]): Promise<readonly string[]> {
  const order: string[] = []
  const all = asked.map(async ({ limiter, name, purpose }) => {
    const grant = await limiter.acquire(purpose)
    order.push(name)
    grant.settle()
  })
  await clock.runUntil(Promise.all(all))
  return order
}

describe('twenty in any ten seconds for all of them together', () => {
  const request = fc.record({
    by: fc.integer({ min: 0, max: 7 }),
    askedAtMs: fc.integer({ min: 0, max: 15_000 }),
    purpose: fc.constantFrom<Purpose>('create', 'status'),
    latencyMs: fc.oneof(fc.integer({ min: 0, max: 400 }), fc.integer({ min: 0, max: 12_000 })),
    /** Where between its sending and its answer the service counts it. */
    countedAt: fc.double({ min: 0, max: 1, noNaN: true }),
  })

  it('whatever the latencies are, and wherever in them a request is counted', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(request, { minLength: 21, maxLength: 70 }), async (requests) => {
        const { clock, limiters } = createNeighbours(8)
        const counted: number[] = []
        const sent = requests.map(async ({ by, askedAtMs, purpose, latencyMs, countedAt }) => {
          await clock.sleep(askedAtMs)
          const grant = await limiters[by]?.acquire(purpose)
          counted.push(clock.monotonic() + latencyMs * countedAt)
          await clock.sleep(latencyMs)
          grant?.settle()
        })
        await clock.advance(300_000)
        await Promise.all(sent)
        const instants = counted.toSorted((a, b) => a - b)
        expect(instants).toHaveLength(requests.length)
        for (const [index, instant] of instants.slice(LIMIT).entries())
          expect(instant - (instants[index] ?? 0)).toBeGreaterThanOrEqual(WINDOW_MS)
      }),
      { numRuns: 15 },
    )
  })

  it('and no slower: eight processes send twenty every ten seconds', async () => {
    const { clock, limiters } = createNeighbours(8)
    const grantedAtMs: number[] = []
    const sent = limiters.flatMap((limiter) =>
      Array.from({ length: 10 }, async () => {
        const grant = await limiter.acquire('status')
        grantedAtMs.push(clock.monotonic())
        grant.settle()
      }),
    )
    await clock.runUntil(Promise.all(sent))
    expect(grantedAtMs.toSorted((a, b) => a - b)).toEqual(
      [0, 10_000, 20_000, 30_000].flatMap((ms) => Array.from({ length: LIMIT }, () => ms)),
    )
  })

  it('separately for separate keys', async () => {
    const clock = createManualClock()
    const path = join(temporaryFolder(), 'limits.db')
    const one = createTestLedger(clock, path, budgetOf('https://a.example', 'key'))
    const other = createTestLedger(clock, path, budgetOf('https://a.example', 'other key'))
    const elsewhere = createTestLedger(clock, path, budgetOf('https://b.example', 'key'))
    for (let taken = 0; taken < LIMIT; taken++) expect(one.take('status')).toHaveProperty('settle')
    expect(one.take('status')).toEqual({ retryInMs: WINDOW_MS })
    expect(other.take('status')).toHaveProperty('settle')
    expect(elsewhere.take('status')).toHaveProperty('settle')
  })
})

describe('the order between processes', () => {
  it('is: creates before status requests, otherwise as they came', async () => {
    const { clock, limiters } = createNeighbours(4)
    await fillOneByOne(clock, limiters[0])
    const [a, b, c, d] = limiters
    if (c === undefined || d === undefined) throw new Error('four were asked for')
    expect(
      await orderOf(clock, [
        { limiter: a, name: 'status of a', purpose: 'status' },
        { limiter: b, name: 'status of b', purpose: 'status' },
        { limiter: c, name: 'create of c', purpose: 'create' },
        { limiter: d, name: 'create of d', purpose: 'create' },
      ]),
    ).toEqual(['create of c', 'create of d', 'status of a', 'status of b'])
  })

  it('takes turns: who has many requests does not keep out who has one', async () => {
    const { clock, limiters } = createNeighbours(2)
    const [many, single] = limiters
    await fillOneByOne(clock, many)
    const asked = Array.from({ length: 200 }, (_, index) => ({
      limiter: many,
      name: `${index}`,
      purpose: 'create' as const,
    }))
    const order = await orderOf(clock, [...asked, { limiter: single, name: 'the one', purpose: 'create' }])
    expect(order.indexOf('the one')).toBeLessThanOrEqual(1)
  })

  it('passes over a waiter that does not come: killed, stopped or asleep', async () => {
    const { clock, path, limiters } = createNeighbours(1)
    await fill(limiters[0])
    // Asks once, has the first turn, and is never heard of again.
    for (let stopped = 0; stopped < LIMIT; stopped++)
      expect(createTestLedger(clock, path).take('create')).toHaveProperty('retryInMs')
    await clock.runUntil(limiters[0].acquire('status'))
    expect(clock.monotonic()).toBeGreaterThanOrEqual(WINDOW_MS)
    expect(clock.monotonic()).toBeLessThan(2 * WINDOW_MS + 2_000)
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

describe('holding back', () => {
  it('reaches every process, those that wait and those that come later', async () => {
    const { clock, path, limiters } = createNeighbours(2)
    const [told, waiting] = limiters
    await fill(told)
    const left = waiting.acquire('create').then(() => clock.monotonic())
    told.holdBack(15_000)
    const late = createLimiter(RUNS_LIMIT, clock, { ledger: createTestLedger(clock, path) })
    const leftLate = late.acquire('status').then(() => clock.monotonic())
    await clock.runUntil(Promise.all([left, leftLate]))
    expect([await left, await leftLate]).toEqual([15_000, 15_000])
  })

  it('is never shortened by another process', async () => {
    const { clock, limiters } = createNeighbours(2)
    limiters[0].holdBack(9_000)
    limiters[1].holdBack(1_000)
    await clock.runUntil(limiters[1].acquire('status'))
    expect(clock.monotonic()).toBe(9_000)
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
  let program: string
  let sender: string
  beforeAll(async () => {
    program = await built(new URL('./taker.ts', import.meta.url))
    sender = await built(new URL('./sender.ts', import.meta.url))
  })

  it.each(DAMAGES)(
    'keep the limit together when their file is %s while all of them send',
    async (_, damage) => {
      const limit = { requests: LIMIT, windowMs: 1_000 }
      const path = join(temporaryFolder(), 'limits.db')
      const instants: number[] = []
      const counted: { readonly count: number; go(): void }[] = []
      const has = (count: number) => new Promise<void>((go) => counted.push({ count, go }))
      const children = Array.from({ length: 4 }, () =>
        spawn(process.execPath, [sender, path, 'a key', JSON.stringify(limit)], {
          stdio: ['ignore', 'pipe', 'inherit'],
        }),
      )
      onTestFinished(() => {
        for (const child of children) child.kill('SIGKILL')
      })
      for (const { stdout } of children)
        createInterface(stdout).on('line', (line) => {
          instants.push(Number(line))
          for (const { count, go } of counted) if (instants.length >= count) go()
        })
      await has(2 * LIMIT + 5)
      damage(path)
      await has(5 * LIMIT)
      const sorted = instants.toSorted((a, b) => a - b)
      const spans = sorted.slice(LIMIT).map((instant, index) => instant - (sorted[index] ?? 0))
      expect(Math.min(...spans)).toBeGreaterThanOrEqual(limit.windowMs)
    },
  )

  it('that die holding places give them back one window after the death is seen', async () => {
    const { clock, path, limiters } = createNeighbours(1)
    const { stdout, signal } = spawnSync(process.execPath, [program, path, 'a key', String(LIMIT)], {
      encoding: 'utf8',
    })
    expect({ stdout, signal }).toEqual({ stdout: `${LIMIT} places\n`, signal: 'SIGKILL' })
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
