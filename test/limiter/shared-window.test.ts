/** What several processes on one file show, beyond the contract of all ledgers. Here they are neighbours on one manual clock. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'libsql'
import { describe, expect, it } from 'vitest'
import type { Clock } from '../../src/host/clock.js'
import { Limiter } from '../../src/limiter/index.js'
import { keyHashOf, SharedWindow } from '../../src/limiter/shared-window.js'
import { RUNS_LIMIT } from '../../src/protocol/limits.js'
import { built } from '../support/built.js'
import { createManualClock, temporaryFolder, whenOver } from '../support/index.js'
import { itKeepsTheLimit } from './window-tests.js'

const { requests: LIMIT, windowMs: WINDOW_MS } = RUNS_LIMIT

/** One more process on a file: each call is a neighbour of its own. */
function createTestLimiter(
  clock: Clock,
  path: string,
  keyHash = 'a key',
  onLost: (error: unknown) => void = (error) => expect.unreachable(String(error)),
): Limiter {
  const limiter = new Limiter(clock, { open: () => new SharedWindow({ path, keyHash, clock }), onLost })
  whenOver(() => limiter.close())
  return limiter
}

function createNeighbours(count: number) {
  const clock = createManualClock()
  const path = join(temporaryFolder(), 'limits.db')
  const limiters = Array.from({ length: count }, () => createTestLimiter(clock, path))
  return { clock, path, limiters: limiters as [Limiter, Limiter, ...Limiter[]] }
}

/** Takes all twenty slots and settles them at once. */
async function fill(limiter: Limiter): Promise<void> {
  for (let taken = 0; taken < LIMIT; taken++) (await limiter.acquire('status')).settle()
}

describe('eight processes together', () => {
  itKeepsTheLimit(() => createNeighbours(8), 10)
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

/** Takes a slot: 0, or how long to wait. */
function take(window: SharedWindow, spare = 0): number {
  const taken = window.take(spare)
  return 'slot' in taken ? 0 : taken.retryInMs
}

function createWindows(keys: readonly string[] = ['a key', 'a key']) {
  const clock = createManualClock()
  const path = join(temporaryFolder(), 'limits.db')
  const windows = keys.map((keyHash) => new SharedWindow({ path, keyHash, clock }))
  whenOver(() => {
    for (const window of windows) window.close()
  })
  return { clock, path, windows: windows as [SharedWindow, SharedWindow] }
}

it('the slots of a key count together in all processes, and each key has its own', () => {
  const { windows } = createWindows(['a key', 'a key', 'another key'])
  const [one, other] = windows
  for (let taken = 0; taken < LIMIT / 2; taken++) for (const window of [one, other]) take(window)
  expect([take(one), take(other)]).toEqual([100, 100])
  expect(windows.map((window) => window.used())).toEqual([LIMIT, LIMIT, 0])
})

it('the slots of a key leave some free for creates', () => {
  const [one] = createWindows().windows
  for (let taken = 0; taken < LIMIT - 2; taken++) take(one)
  expect(take(one, 2)).toBe(100)
  expect([take(one), take(one)]).toEqual([0, 0])
})

it('the slots of a key are not granted to any process while they are held back, and a hold is not shortened', async () => {
  const { clock, windows } = createWindows()
  const [told, other] = windows
  told.holdBack(9_000)
  told.holdBack(2_000)
  expect([take(told), take(other)]).toEqual([9_000, 9_000])
  await clock.advance(9_000)
  expect(take(other)).toBe(0)
})

it('a restart of the machine costs one window at most: its clock begins anew, and what lies ahead is taken for now', async () => {
  const path = join(temporaryFolder(), 'limits.db')
  const before = createManualClock()
  await before.advance(5_000_000)
  const old = createTestLimiter(before, path)
  await fill(old)
  old.holdBack(30_000)
  const after = createManualClock()
  await after.runUntil(createTestLimiter(after, path).acquire('create'))
  expect(after.monotonic()).toBe(WINDOW_MS)
})

it('a process that was killed gives its slots back one window after its death is noticed', async () => {
  const sender = await built(new URL('./sender.ts', import.meta.url))
  const { clock, path, limiters } = createNeighbours(1)
  const words = [sender, path, String(LIMIT)]
  const { stdout, signal } = spawnSync(process.execPath, words, { encoding: 'utf8' })
  expect({ slots: stdout.split('\n').length - 1, signal }).toEqual({ slots: LIMIT, signal: 'SIGKILL' })
  await clock.runUntil(limiters[0].acquire('create'))
  expect(clock.monotonic()).toBe(WINDOW_MS)
})

it.each<readonly [string, (path: string) => void]>([
  ['removed', (path) => rmSync(path)],
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
])(
  'a ledger whose file is %s while it is in use falls back to the limit within the process once, with a pause of one window',
  async (how, damage) => {
    const clock = createManualClock()
    const path = join(temporaryFolder(), 'limits.db')
    const lost: unknown[] = []
    const limiter = createTestLimiter(clock, path, 'a key', (error) => void lost.push(error))
    const grant = await limiter.acquire('status')
    await clock.advance(1_000)
    damage(path)
    grant.settle()
    await clock.runUntil(fill(limiter))
    expect(clock.monotonic()).toBe(1_000 + WINDOW_MS)
    await clock.runUntil(limiter.acquire('create'))
    // Of a file that was cut, SQLite has all pages in memory, and goes on: the slots of this process count all the same.
    expect(lost.length).toBe(how === 'cut' ? 0 : 1)
    expect(clock.monotonic()).toBe(1_000 + (lost.length + 1) * WINDOW_MS)
  },
)

// Which damage is noticed when a file is opened: test/journal/journal.test.ts.
it('a ledger whose file was damaged before is replaced once: the new one grants nothing for one window, to any process and of any key', async () => {
  const { clock, path, limiters } = createNeighbours(1)
  await fill(limiters[0])
  writeFileSync(path, 'not a database '.repeat(1_000))
  const next = (keyHash: string) =>
    createTestLimiter(clock, path, keyHash)
      .acquire('status')
      .then(() => clock.monotonic())
  const atMs = Promise.all([next('a key'), next('a key'), next('another key')])
  await clock.runUntil(atMs)
  expect(await atMs).toEqual([WINDOW_MS, WINDOW_MS, WINDOW_MS])
})
