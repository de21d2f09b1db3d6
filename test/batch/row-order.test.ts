import { describe, expect, it } from 'vitest'
import type { PlanStep } from '../../src/batch/plan/index.js'
import { expectationOf } from '../../src/batch/plan/row-order.js'

type Planned = Pick<PlanStep, 'action' | 'model'>

const make = (count: number, model: string | null = 'a/b'): readonly Planned[] =>
  Array.from({ length: count }, () => ({
    action: { do: 'create', why: 'missing', replaces: false },
    model: model ?? undefined,
  }))

const PACE = { requests: 20, windowMs: 10_000, concurrency: undefined }
const usually = (ms: number | undefined) => ({ ...PACE, usualMs: () => ms })

describe('what a plan takes', () => {
  it.each([
    ['nothing', make(0), 0, usually(5_000), { leastMs: 0, expectedMs: undefined }],
    ['one run', make(1), 2, usually(5_000), { leastMs: 0, expectedMs: 5_000 }],
    ['as many as fit a window', make(10), 20, usually(1_000), { leastMs: 0, expectedMs: 1_000 }],
    ['one more', make(11), 22, usually(1_000), { leastMs: 10_000, expectedMs: 10_000 }],
    ['a hundred that take no time', make(100), 200, usually(0), { leastMs: 90_000, expectedMs: 90_000 }],
    [
      'a hundred that take a minute',
      make(100),
      200,
      usually(60_000),
      { leastMs: 90_000, expectedMs: 100_000 },
    ],
    ['what nobody has seen', make(100), 200, usually(undefined), { leastMs: 90_000, expectedMs: undefined }],
    ['what has no model', make(1, null), 2, usually(5_000), { leastMs: 0, expectedMs: undefined }],
    [
      'two at a time',
      make(5),
      10,
      { ...usually(60_000), concurrency: 2 },
      { leastMs: 0, expectedMs: 180_000 },
    ],
    [
      'what is only fetched',
      [{ action: { do: 'download', why: 'missing', run: 'run_1' }, model: 'a/b' } as never],
      1,
      usually(60_000),
      { leastMs: 0, expectedMs: undefined },
    ],
  ] as const)('%s', (_, steps, requests, pace, expected) => {
    expect(expectationOf(steps, requests, pace)).toEqual(expected)
  })

  const chained = (uses: Readonly<Record<string, readonly string[]>>) =>
    Object.entries(uses).map(
      ([name, sources]) => ({ ...make(1)[0], entry: { name }, sources }) as unknown as Planned,
    )

  it.each<[string, Readonly<Record<string, readonly string[]>>, number | undefined, number]>([
    ['a chain takes the time of all its runs', { a: [], b: ['a'], c: ['b'] }, undefined, 180_000],
    [
      'of two branches, the longer one',
      { a: [], b: ['a'], c: ['a'], d: ['b', 'e'], e: [] },
      undefined,
      180_000,
    ],
    ['a source that is up to date takes none', { b: ['a'] }, undefined, 60_000],
    ['in any order', { c: ['b'], b: ['a'], a: [] }, undefined, 180_000],
    ['with a cap, the longest chain goes first', { x: [], y: [], a: [], b: ['a'], c: ['b'] }, 2, 180_000],
  ])('%s', (_, uses, concurrency, expectedMs) => {
    const pace = { ...usually(60_000), concurrency }
    expect(expectationOf(chained(uses), 2, pace).expectedMs).toBe(expectedMs)
  })

  it('begins a chain before many single runs, which would keep it back', () => {
    const singles = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`s${at}`, []]))
    const steps = chained({ ...singles, a: [], b: ['a'], c: ['b'] })
    expect(expectationOf(steps, 126, usually(60_000)).expectedMs).toBe(180_000)
  })

  it('goes by the slowest of several models', () => {
    const usualMs = (model: string) => (model === 'a/film' ? 120_000 : 2_000)
    expect(expectationOf([...make(30, 'a/still'), ...make(1, 'a/film')], 62, { ...PACE, usualMs })).toEqual({
      leastMs: 30_000,
      expectedMs: 130_000,
    })
  })
})
