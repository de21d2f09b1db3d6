/** The list of runs: pages in any order give every run once, the newest first. */
import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { pollDelayMs } from '../../src/console/polling.js'
import { timelineOf } from '../../src/console/runs/run-details.js'
import {
  countAbove,
  listOfPage,
  MAX_FOLLOWED,
  neighboursOf,
  type RunList,
  unfinishedIds,
  withHead,
  withOlder,
} from '../../src/console/runs/run-list.js'
import { filtersOf, isFiltered, isSameFilter } from '../../src/console/runs/runs-filters.js'
import type { RunDetails, RunSummary, RunsPage } from '../../src/protocol/console.js'
import type { LocalStatus } from '../../src/protocol/run-state.js'

const time = (number: number): string => new Date(Date.UTC(2026, 0, 1) + number * 1_000).toISOString()

const run = (
  number: number,
  status: LocalStatus = 'succeeded',
  more: Partial<RunSummary> = {},
): RunSummary => ({
  ...{ id: `run_${number}`, kind: 'image', model: 'rushes/preview-image', prompt: `fox ${number}` },
  ...{
    status,
    progress: null,
    queue_position: null,
    aspect_ratio: null,
    key: null,
    price: 1,
    is_refunded: false,
    outputs: [],
    thumbnail: null,
    error: null,
  },
  ...{ created_at: time(number), started_at: null, finished_at: null },
  ...more,
})

const page = (
  runs: readonly RunSummary[],
  next: string | null = null,
  changed: readonly RunSummary[] = [],
): RunsPage => ({ runs, next, changed, balance: 1 })
const ids = ({ runs }: RunList): readonly string[] => runs.map(({ id }) => id)
const statuses = ({ runs }: RunList): readonly string[] => runs.map(({ status }) => status)

describe('the list of runs', () => {
  it('appends older pages without repeats', () => {
    const first = listOfPage(page([run(4), run(3)], 'c3'))
    const both = withOlder(first, page([run(3), run(2), run(1)]), 'c3')
    expect(ids(both)).toEqual(['run_4', 'run_3', 'run_2', 'run_1'])
    expect(both.next).toBeNull()
  })

  it('ignores a page that does not follow its last run', () => {
    const again = listOfPage(page([run(9), run(8)], 'c8'))
    expect(withOlder(again, page([run(2), run(1)]), 'c3')).toBe(again)
  })

  it('puts new runs first, and updates changed runs, also below the first page', () => {
    const before = listOfPage(page([run(3, 'processing'), run(2, 'queued'), run(1, 'queued')], 'c1'))
    const after = withHead(before, page([run(4), run(3)], 'c3', [run(2, 'processing'), run(1)]))
    expect(ids(after)).toEqual(['run_4', 'run_3', 'run_2', 'run_1'])
    expect(statuses(after)).toEqual(['succeeded', 'succeeded', 'processing', 'succeeded'])
    expect(after.next).toBe('c1')
  })

  it('keeps the same objects when nothing has changed', () => {
    const list = listOfPage(page([run(2, 'queued'), run(1, 'queued')], 'c1'))
    const after = withHead(list, page([run(2, 'queued')], 'c2', [run(1, 'queued')]))
    for (const [at, each] of list.runs.entries()) expect(after.runs[at]).toBe(each)
  })

  it.each<[LocalStatus, LocalStatus, LocalStatus]>([
    ['queued', 'processing', 'processing'],
    ['processing', 'queued', 'queued'],
    ['processing', 'failed', 'failed'],
    ['succeeded', 'processing', 'succeeded'],
    ['failed', 'queued', 'failed'],
  ])('%s, then %s: %s', (before, then, shown) =>
    expect(statuses(withHead(listOfPage(page([run(1, before)])), page([run(1, then)])))).toEqual([shown]),
  )

  it('loses and repeats no run, in any order of pages and changes', () => {
    const events = fc.array(fc.constantFrom('create', 'older', 'head'), { maxLength: 60 })
    fc.assert(
      fc.property(fc.nat(12), fc.integer({ min: 1, max: 5 }), events, (already, size, steps) => {
        let created = already
        const all = () => Array.from({ length: created }, (_, at) => run(created - at))
        const read = (before: number): RunsPage => {
          const older = all().filter(({ id }) => Number(id.slice(4)) < before)
          const runs = older.slice(0, size)
          return page(runs, older.length > size ? (runs.at(-1)?.id.slice(4) ?? null) : null)
        }
        let list = listOfPage(read(Number.POSITIVE_INFINITY))
        const refresh = () => {
          list = withHead(list, read(Number.POSITIVE_INFINITY))
        }
        for (const step of steps) {
          if (step === 'create') created++
          if (step === 'older' && list.next !== null)
            list = withOlder(list, read(Number(list.next)), list.next)
          if (step === 'head') refresh()
        }
        refresh()
        while (list.next !== null) list = withOlder(list, read(Number(list.next)), list.next)
        expect(ids(list)).toEqual(all().map(({ id }) => id))
      }),
    )
  })
})

describe('the first page of a filter', () => {
  it('replaces the runs of its range, and keeps older ones', () => {
    const list = withOlder(
      listOfPage(page([run(9), run(7), run(5)], 'c5')),
      page([run(4), run(2)], 'c2'),
      'c5',
    )
    // 8 has entered the filter, 7 has left it.
    const after = withHead(list, page([run(9), run(8), run(5)], 'c5'))
    expect(ids(after)).toEqual(['run_9', 'run_8', 'run_5', 'run_4', 'run_2'])
    expect(after.next).toBe('c2')
  })

  it('drops runs of its range that left the filter', () => {
    const list = listOfPage(page([run(9), run(7), run(5)], null))
    expect(ids(withHead(list, page([run(9), run(6)], 'c6')))).toEqual(['run_9', 'run_6', 'run_5'])
  })

  it('keeps older runs when it is empty before the end of all runs', () => {
    const list = listOfPage(page([run(9), run(5)], 'c5'))
    const after = withHead(list, page([], 'c8'))
    expect(ids(after)).toEqual(['run_9', 'run_5'])
    expect(after.next).toBe('c5')
  })

  it('drops an older run whose status no longer matches', () => {
    const list = listOfPage(page([run(9, 'queued'), run(5, 'queued'), run(4, 'queued')], 'c4'))
    const head = page([run(9, 'queued')], 'c9', [run(5, 'processing')])
    expect(ids(withHead(list, head, ({ status }) => status === 'queued'))).toEqual(['run_9', 'run_4'])
  })

  it.each([
    ['at the end of all runs', [run(9)], null, ['run_9'], null],
    ['after more new runs than a page has', [run(20), run(19)], 'c19', ['run_20', 'run_19'], 'c19'],
    ['when nothing matches any more', [], null, [], null],
  ])('replaces the list %s', (_, runs, next, shown, then) => {
    const after = withHead(listOfPage(page([run(9), run(5)], 'c5')), page(runs, next))
    expect(ids(after)).toEqual(shown)
    expect(after.next).toBe(then)
  })
})

describe('unfinished runs', () => {
  const runs = [run(5, 'queued'), run(4), run(3, 'processing'), run(2, 'failed'), run(1, 'queued')]
  it('include those with the status queued or processing', () =>
    expect(unfinishedIds(runs, () => new Set())).toEqual(['run_5', 'run_3', 'run_1']))
  it('include at most a maximum for polling, with those in view first', () => {
    const many = Array.from({ length: 1_000 }, (_, at) => run(at, 'queued'))
    const polled = unfinishedIds(many, () => new Set(['run_900', 'run_901']))
    expect(polled.slice(0, 3)).toEqual(['run_900', 'run_901', 'run_0'])
    expect(polled).toHaveLength(MAX_FOLLOWED)
  })
})

test('counts new runs above the one that was first', () => {
  const runs = [run(5), run(4), run(3)]
  expect([undefined, 'run_5', 'run_3', 'run_x'].map((id) => countAbove(runs, id))).toEqual([0, 0, 2, 0])
})

test('finds the newer and the older neighbour of a run', () => {
  const runs = [run(3), run(2), run(1)]
  expect(neighboursOf(runs, 'run_3')).toEqual({ newer: undefined, older: 'run_2' })
  expect(neighboursOf(runs, 'run_2')).toEqual({ newer: 'run_3', older: 'run_1' })
  expect(neighboursOf(runs, 'run_x')).toEqual({ newer: undefined, older: undefined })
})

test.each([
  ['unfinished', { hasUnfinished: true }, 2_000],
  ['finished', {}, 5_000],
  ['hidden', { isVisible: false, hasUnfinished: true }, undefined],
  ['one failure', { failures: 1 }, 2_000],
  ['two failures', { failures: 2 }, 4_000],
  ['four failures', { failures: 4, hasUnfinished: true }, 16_000],
  ['many failures', { failures: 1_000 }, 30_000],
  ['asked to wait', { hasUnfinished: true, retryAfterMs: 7_000 }, 7_000],
  ['asked to wait while hidden', { isVisible: false, retryAfterMs: 7_000 }, undefined],
])('sets the delay of the next poll: %s', (_, state, expected) =>
  expect(pollDelayMs({ isVisible: true, hasUnfinished: false, failures: 0, ...state })).toBe(expected),
)

describe('filters', () => {
  test.each([
    [{}, {}],
    [
      { status: 'failed', kind: 'video', key: '3', search: 'fox' },
      { status: 'failed', kind: 'video', key: '3', search: 'fox' },
    ],
    [{ key: 'console' }, { key: 'console' }],
    [{ status: 'lost', kind: 'audio', key: 'x', search: '  ', more: '1' }, {}],
    [{ key: '1e3' }, {}],
    [{ search: '<b>' }, { search: '<b>' }],
  ])('%o: %o', (query, filters) => expect(filtersOf(query as Record<string, string>)).toEqual(filters))

  test('count as equal when their values are', () => {
    expect(isSameFilter({ status: 'failed' }, { status: 'failed' })).toBe(true)
    expect(isSameFilter({ status: 'failed' }, { status: 'failed', search: 'a' })).toBe(false)
    expect([isFiltered({}), isFiltered({ key: 'console' })]).toEqual([false, true])
  })
})

describe('the timeline', () => {
  const details = (more: Partial<RunDetails>): RunDetails => ({
    ...run(0, 'queued'),
    ...{ input: {}, crashes: 0, service: {} },
    ...more,
  })
  const shown = (more: Partial<RunDetails>, now = 100) =>
    timelineOf(details(more), Date.parse(time(now))).map(
      ({ label, durationMs, during }) =>
        `${label}${durationMs === undefined ? '' : ` (${durationMs / 1_000} s ${during})`}`,
    )

  test.each<[string, Partial<RunDetails>, readonly string[]]>([
    ['queued', {}, ['Queued (100 s in the queue)']],
    [
      'started',
      { status: 'processing', started_at: time(4) },
      ['Queued (4 s in the queue)', 'Started (96 s rendering)'],
    ],
    [
      'succeeded',
      { status: 'succeeded', started_at: time(4), finished_at: time(9) },
      ['Queued (4 s in the queue)', 'Started (5 s rendering)', 'Succeeded'],
    ],
    [
      'canceled in the queue',
      { status: 'canceled', finished_at: time(9) },
      ['Queued (9 s in the queue)', 'Canceled'],
    ],
  ])('shows the steps of a run: %s', (_, more, entries) => expect(shown(more)).toEqual(entries))

  test('shows no negative duration when clocks differ', () => {
    expect(shown({}, -5)).toEqual(['Queued (0 s in the queue)'])
  })
})
