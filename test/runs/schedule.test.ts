/** What the schedule sends next, and how each row ends: against a service as a function, by the clock of the test. */
import { describe, expect, it } from 'vitest'
import { ApiClient } from '../../src/client/index.js'
import type { Fetch } from '../../src/host/http.js'
import { createInterrupts } from '../../src/host/interrupts.js'
import { Limiter } from '../../src/limiter/index.js'
import type { Row, RunsSession } from '../../src/runs/run.js'
import { carryOut, type RunEvent, stopsCreating } from '../../src/runs/schedule.js'
import { createManualClock, type ManualClock, responseOf, type Scripted } from '../support/index.js'

interface Options extends Partial<RunsSession> {
  readonly clock?: ManualClock
  /** How long the service takes for a run, and to answer a create. */
  readonly runMs?: number
  readonly createMs?: number
  /** Responses to the creates of these rows in place of a 201. */
  readonly refused?: Readonly<Record<string, Scripted>>
  /** Rows whose runs fail. */
  readonly failing?: readonly string[]
  /** Called with each event. */
  onEvent?(event: RunEvent): void | Promise<void>
}

/** `a<b`: a row that needs b. `=a`: a run that exists already. `.a`: a row that needs no request. */
const rowOf = (word: string): Row => {
  const [, sign, name = '', needs] = /^([=.]?)(\w+)(?:<([\w,]+))?$/.exec(word) ?? []
  return {
    name,
    needs: needs?.split(',') ?? [],
    begin() {
      if (sign === '.') return { is: 'done', isMade: true }
      if (sign === '=') return { is: 'follow', run: { id: name } }
      return {
        is: 'create',
        request: async () => ({
          body: Buffer.from(name),
          intent: { kind: 'image', model: 'acme/still-1', input: {} },
        }),
      }
    },
    deliver: async () => ({ files: [], warnings: [], error: undefined }),
  }
}

function bench(rows: string | readonly Row[], options: Options = {}) {
  const { runMs = 2_000, createMs = 0, refused = {}, failing = [], onEvent, ...given } = options
  const { clock = createManualClock() } = options
  const startedAt = new Map<string, number>()
  /** Requests with the second in which they were sent. */
  const sent: string[] = []
  const unanswered = { creates: 0, most: 0 }
  const fetch: Fetch = async ({ method, url, body, signal }) => {
    const name = method === 'POST' ? Buffer.from(body ?? []).toString() : url.pathname.replace(/^.*\//, '')
    sent.push(`${method === 'POST' ? 'create' : 'look'} ${name} ${Math.floor(clock.monotonic() / 1_000)}`)
    if (method === 'POST') {
      unanswered.most = Math.max(unanswered.most, ++unanswered.creates)
      await clock.sleep(createMs, signal)
      unanswered.creates--
      const refusal = refused[name]
      if (refusal !== undefined) return responseOf(refusal)
      startedAt.set(name, clock.monotonic())
      return responseOf({ status: 201, body: { id: name } })
    }
    const isOver = clock.monotonic() - (startedAt.get(name) ?? 0) >= runMs
    if (!isOver) return responseOf({ status: 200, body: { id: name, status: 'processing' } })
    const status = failing.includes(name) ? 'failed' : 'succeeded'
    const output = { urls: [`https://cdn.test/${name}`] }
    return responseOf({ status: 200, body: { id: name, status, output } })
  }
  const client = new ApiClient({
    baseUrl: 'https://api.test',
    apiKey: 'sk-test',
    limiter: new Limiter(clock),
    clock,
    fetch,
  })
  const interrupts = createInterrupts()
  const session: RunsSession = {
    client,
    clock,
    interrupts,
    journal: undefined,
    policy: 'best effort',
    address: 'https://api.test',
    profile: 'default',
    random: () => 0,
    stopsCreates: stopsCreating,
    ...given,
  }
  const list = typeof rows === 'string' ? rows.split(' ').map(rowOf) : rows
  const ends: Record<string, string> = {}
  const read = async () => {
    for await (const event of carryOut(list, session)) {
      if (event.is === 'ended') ends[event.run.row.name] = wordOf(event.result)
      await onEvent?.(event)
    }
  }
  return { clock, interrupts, sent, unanswered, ends, run: () => clock.runUntil(read()) }
}

function wordOf(result: Extract<RunEvent, { is: 'ended' }>['result']): string {
  if (result.is === 'running') return `running: ${result.why}`
  return result.is === 'blocked' ? `blocked by ${result.by}` : result.is
}

const creates = (sent: readonly string[]) =>
  sent.filter((line) => line.startsWith('create')).map((line) => line.split(' ').slice(1).join(' '))

describe('creates', () => {
  it('begin with the first alone, and then four are unanswered at most', async () => {
    const { run, sent, unanswered } = bench('a b c d e f g', { createMs: 1_000 })
    await run()
    expect(creates(sent)).toEqual(['a 0', 'b 1', 'c 1', 'd 1', 'e 1', 'f 2', 'g 2'])
    expect(unanswered.most).toBe(4)
  })

  it('are sent one by one while none was accepted', async () => {
    const refused = { a: { status: 400 }, b: { status: 400 } }
    const { run, sent, ends } = bench('a b c d', { createMs: 1_000, refused, stopsCreates: () => false })
    await run()
    expect(creates(sent)).toEqual(['a 0', 'b 1', 'c 2', 'd 3'])
    expect(ends).toEqual({ a: 'refused', b: 'refused', c: 'succeeded', d: 'succeeded' })
  })

  it('go before the status requests of runs that are due', async () => {
    const names = Array.from({ length: 25 }, (_, at) => `r${at}`)
    const { run, sent } = bench(names.join(' '), { runMs: 1_000 })
    await run()
    const last = sent.findIndex((line) => line.startsWith('create r24'))
    // The whole limit is for creates; looks take what is left when all are sent or none may be.
    expect(creates(sent.slice(0, 20))).toHaveLength(20)
    expect(sent.slice(0, last).filter((line) => line.startsWith('look')).length).toBeLessThanOrEqual(18)
  })

  it.each([
    [1, ['a 0', 'b 2', 'c 4']],
    [2, ['a 0', 'b 0', 'c 2']],
    [undefined, ['a 0', 'b 0', 'c 0']],
  ])('leave at most %s runs in flight', async (concurrency, expected) => {
    const { run, sent } = bench('a b c', { concurrency })
    await run()
    expect(creates(sent)).toEqual(expected)
  })

  it('of rows that need others wait until these are made', async () => {
    const { run, sent, ends } = bench('c<a,b a b<x .x')
    await run()
    expect(creates(sent)).toEqual(['a 0', 'b 0', 'c 2'])
    expect(ends).toEqual({ x: 'done', a: 'succeeded', b: 'succeeded', c: 'succeeded' })
  })
})

it.each<[string, string, Options, Record<string, string>]>([
  [
    'that failed blocks those that need it, all by its name',
    'a b<a c<b d',
    { failing: ['a'] },
    { a: 'failed', b: 'blocked by a', c: 'blocked by a', d: 'succeeded' },
  ],
  [
    'that failed stops further creates with fail-fast',
    'a b',
    { failing: ['a'], isFailFast: true, concurrency: 1 },
    { a: 'failed', b: 'unsent' },
  ],
  [
    'whose create is refused for good is the last one',
    'a b c',
    { refused: { a: { status: 402 } } },
    { a: 'refused', b: 'unsent', c: 'unsent' },
  ],
  [
    'whose create is redirected, by a service that is down, is the last one',
    'a b',
    { refused: { a: { status: 307, headers: { location: '/elsewhere' } } } },
    { a: 'refused', b: 'unsent' },
  ],
  [
    'whose create has an unknown outcome is the last one',
    'a b',
    { refused: { a: { status: 500 } } },
    { a: 'unconfirmed', b: 'unsent' },
  ],
  [
    'that is refused after others leaves these to their end',
    'a b c',
    { concurrency: 2, refused: { b: { status: 402 } } },
    { a: 'succeeded', b: 'refused', c: 'unsent' },
  ],
  [
    'that is in flight counts before a create',
    '=a b',
    { concurrency: 1, runMs: 5_000 },
    { a: 'succeeded', b: 'succeeded' },
  ],
  [
    'is only created where nobody follows it',
    'a b',
    { isFollowed: false, concurrency: 1 },
    { a: 'created', b: 'created' },
  ],
  [
    'is looked at once where that is asked for',
    '=a =b',
    { isOnce: true, runMs: 9e9 },
    { a: 'running: not finished', b: 'running: not finished' },
  ],
  [
    'whose limit has passed ends as running and stops creates',
    'a b',
    { concurrency: 1, timeoutMs: 1_500, runMs: 9e9 },
    { a: 'running: time limit', b: 'unsent' },
  ],
  [
    'that needs a run whose limit has passed is blocked',
    'a b<a',
    { timeoutMs: 1_500, runMs: 9e9 },
    { a: 'running: time limit', b: 'blocked by a' },
  ],
  [
    'is not created after a stop from outside',
    'a b',
    { noCreates: AbortSignal.abort() },
    { a: 'unsent', b: 'unsent' },
  ],
  ['that needs no request lets others begin', '.a b<a', {}, { a: 'done', b: 'succeeded' }],
])('a row %s', async (_, rows, options, expected) => {
  const { run, ends } = bench(rows, options)
  await run()
  expect(ends).toEqual(expected)
})

it('the last status request of a run whose limit has passed finds its end', async () => {
  const { run, ends, sent } = bench('a', { timeoutMs: 1_900, runMs: 1_500, random: () => 0.99 })
  await run()
  expect([ends, sent]).toEqual([{ a: 'succeeded' }, ['create a 0', 'look a 1', 'look a 1']])
})

it('a signal ends what is followed, sends no further create, and waits for the answer to the one in flight', async () => {
  const events: string[] = []
  const tried = bench('=x a b', {
    createMs: 4_000,
    runMs: 9e9,
    onEvent: (event) => {
      events.push(event.is)
      if (event.is === 'status') tried.interrupts.interrupt('SIGINT')
    },
  })
  await tried.run()
  expect(tried.ends).toEqual({ x: 'running: signal', a: 'running: signal', b: 'unsent' })
  expect(creates(tried.sent)).toEqual(['a 0'])
  expect(events).toContain('unanswered')
})

it('a signal that waits for the event loop when the command begins stops the first create', async () => {
  const { run, interrupts, ends, sent } = bench('a b')
  // Node handles a signal in the next turn of the event loop at the earliest.
  setImmediate(() => interrupts.interrupt('SIGINT'))
  await run()
  expect([ends, sent]).toEqual([{ a: 'unsent', b: 'unsent' }, []])
})

it('a signal leaves a create without an answer unconfirmed after ten seconds', async () => {
  const endedAt: Record<string, number> = {}
  const tried = bench('=x a', {
    createMs: 60_000,
    runMs: 9e9,
    onEvent(event) {
      if (event.is === 'status') tried.interrupts.interrupt('SIGTERM')
      if (event.is === 'ended') endedAt[event.run.row.name] = tried.clock.monotonic()
    },
  })
  await tried.run()
  expect(tried.ends).toEqual({ x: 'running: signal', a: 'unconfirmed' })
  expect(endedAt).toEqual({ x: 0, a: 10_000 })
})

it('a reader that is slow delays no request', async () => {
  const clock = createManualClock()
  const quick = bench('a b c')
  const slow = bench('a b c', { clock, onEvent: () => clock.sleep(30_000) })
  await quick.run()
  await slow.run()
  expect(slow.sent).toEqual(quick.sent)
  expect(slow.ends).toEqual(quick.ends)
})

it('a reader that fails ends the schedule, and is told when every create that was sent is answered', async () => {
  const tried = bench('a b c d e f g', {
    createMs: 1_000,
    onEvent(event) {
      if (event.is === 'created' && event.run.row.name === 'a') throw new Error('the disk is full')
    },
  })
  await expect(tried.run()).rejects.toThrow('the disk is full')
  expect([tried.clock.monotonic(), tried.unanswered.creates]).toEqual([2_000, 0])
  await tried.clock.advance(60_000)
  expect(creates(tried.sent)).toEqual(['a 0', 'b 1', 'c 1', 'd 1', 'e 1'])
})

it('a bug in a row is thrown when the rows that exist have ended', async () => {
  const bug: Row = {
    name: 'bug',
    needs: ['a'],
    begin() {
      throw new TypeError('a bug')
    },
  }
  const tried = bench([rowOf('a'), rowOf('b'), bug])
  await expect(tried.run()).rejects.toThrow('a bug')
  expect(tried.ends).toMatchObject({ a: 'succeeded', bug: 'unsent' })
  await expect(bench([{ ...bug, needs: [] }, rowOf('b')]).run()).rejects.toThrow('a bug')
})
