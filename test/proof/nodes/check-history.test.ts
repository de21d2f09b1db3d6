import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { brokenPromises } from './check-history.js'
import type { Event } from './history.js'

const PROMISES = { requests: 3, windowMs: 1_000, outputOf: (prompt: string) => Buffer.from(`of ${prompt}`) }
const shaOf = (prompt: string) => createHash('sha256').update(PROMISES.outputOf(prompt)).digest('hex')
const at = (sentMs: number, more: object = {}) => ({ sentMs, receivedMs: sentMs + 5, key: 'k', ...more })

const create = (sentMs: number, prompt: string, status: number, id?: string): Event =>
  ({ is: 'create', ...at(sentMs, { status, prompt }), ...(id && { id }) }) as Event
const poll = (sentMs: number, id: string, runStatus: string): Event =>
  ({ is: 'poll', ...at(sentMs, { status: 200 }), id, runStatus }) as Event
const stored = (id: string, prompt: string, status = 'succeeded'): Event => ({
  is: 'stored',
  id,
  prompt,
  status,
  outputs: status === 'succeeded' ? [shaOf(prompt)] : [],
})
const entry = (run: string, kind: 'charge' | 'refund', amount: number): Event => ({
  is: 'entry',
  run,
  kind,
  amount,
})

const GOOD: readonly Event[] = [
  create(0, 'one', 201, 'run_1'),
  create(10, 'two', 0),
  create(20, 'three', 503),
  poll(1_200, 'run_1', 'processing'),
  poll(1_300, 'run_1', 'succeeded'),
  { is: 'output', id: 'run_1', sha256: shaOf('one') },
  stored('run_1', 'one'),
  entry('run_1', 'charge', -1),
  stored('run_2', 'two', 'failed'),
  entry('run_2', 'charge', -1),
  entry('run_2', 'refund', 1),
  { is: 'verified', problems: [] },
]
const without = (...gone: Event[]) =>
  GOOD.filter((event) => !gone.some((each) => JSON.stringify(each) === JSON.stringify(event)))

describe('the checker of histories', () => {
  it('accepts a history in which every promise was kept', () => {
    expect(brokenPromises(GOOD, PROMISES)).toEqual([])
  })

  it.each<[string, readonly Event[], RegExp]>([
    [
      'a lost run',
      without(stored('run_1', 'one'), entry('run_1', 'charge', -1)),
      /run_1 was accepted, and is not stored/,
    ],
    [
      'a response lost in a rolling restart',
      [...GOOD, { is: 'rolling restart', fromMs: 5, toMs: 30 }],
      /run_2 was accepted in the rolling restart without a response/,
    ],
    [
      'a run of another create',
      [...without(stored('run_1', 'one')), stored('run_1', 'two')],
      /prompt of another/,
    ],
    [
      'a run that did not end',
      [...GOOD, create(5_000, 'x', 0), stored('run_9', 'x', 'queued'), entry('run_9', 'charge', -1)],
      /run_9 has not ended/,
    ],
    [
      'two runs of one create',
      [...GOOD, stored('run_3', 'one'), entry('run_3', 'charge', -1)],
      /one create made 2 runs/,
    ],
    [
      'a run of a refused create',
      [...GOOD, stored('run_3', 'three'), entry('run_3', 'charge', -1)],
      /answered with 503 made run_3/,
    ],
    ['a run without a create', [...GOOD, stored('run_3', 'new'), entry('run_3', 'charge', -1)], /never sent/],
    [
      'a second charge',
      [...GOOD, entry('run_1', 'charge', -1)],
      /run_1 is succeeded, and its entries are: charge,charge/,
    ],
    ['no charge', without(entry('run_1', 'charge', -1)), /entries are: none/],
    ['no refund', without(entry('run_2', 'refund', 1)), /run_2 is failed, and its entries are: charge$/],
    [
      'a refund of more',
      [...without(entry('run_2', 'refund', 1)), entry('run_2', 'refund', 2)],
      /refunded 1 credits/,
    ],
    ['a charge of nothing', [...GOOD, entry('run_7', 'charge', -1)], /run_7 was charged, and is not stored/],
    [
      'an end that changes',
      [...GOOD, poll(2_000, 'run_1', 'processing')],
      /was succeeded, and later processing/,
    ],
    [
      'a 404',
      [...GOOD, { is: 'poll', ...at(1_400), status: 404, id: 'run_1' } as Event],
      /answered with 404/,
    ],
    [
      'other bytes',
      [...GOOD, { is: 'output', id: 'run_1', sha256: shaOf('two') }],
      /downloaded with other bytes/,
    ],
    [
      'outputs of another prompt',
      [...without(stored('run_1', 'one')), { ...stored('run_1', 'one'), outputs: [shaOf('two')] } as Event],
      /not made of its prompt/,
    ],
    [
      'a key above its limit',
      [...GOOD, ...[1_210, 1_220].map((ms) => poll(ms, 'run_1', 'processing'))],
      /k got 4 requests within 1000 ms/,
    ],
    [
      'a key above its limit after a crash of the database',
      [
        ...GOOD,
        { is: 'database restart', fromMs: 1_310, toMs: 1_320 },
        ...[1_330, 1_340, 1_350, 1_360].map((ms) => poll(ms, 'run_1', 'succeeded')),
      ],
      /k got 4 requests within 1000 ms/,
    ],
    ['wrong sums', [...GOOD, { is: 'verified', problems: ['the balance of x is wrong'] }], /balance of x/],
    ['sums that nobody verified', without({ is: 'verified', problems: [] }), /not verified/],
  ])('finds %s', (_what, events, problem) => {
    expect(brokenPromises(events, PROMISES).join('\n')).toMatch(problem)
  })

  it('accepts requests that a crash of the database may have forgotten', () => {
    const after = [1_340, 1_350, 1_360].map((ms) => poll(ms, 'run_1', 'succeeded'))
    expect(
      brokenPromises([...GOOD, { is: 'database restart', fromMs: 1_310, toMs: 1_320 }, ...after], PROMISES),
    ).toEqual([])
  })

  it('accepts a request that may have been counted before or after the window', () => {
    const late = {
      is: 'poll',
      ...at(1_250),
      receivedMs: 2_400,
      status: 200,
      id: 'run_1',
      runStatus: 'succeeded',
    } as Event
    expect(brokenPromises([...GOOD, poll(1_400, 'run_1', 'succeeded'), late], PROMISES)).toEqual([])
  })
})
