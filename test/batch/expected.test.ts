import { describe, expect, it } from 'vitest'
import { expectationOf } from '../../src/batch/plan/expected.js'
import type { Step } from '../../src/batch/plan/index.js'

type Planned = Pick<Step, 'action' | 'model'>

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

  it('goes by the slowest of several models', () => {
    const usualMs = (model: string) => (model === 'a/film' ? 120_000 : 2_000)
    expect(expectationOf([...make(30, 'a/still'), ...make(1, 'a/film')], 62, { ...PACE, usualMs })).toEqual({
      leastMs: 30_000,
      expectedMs: 130_000,
    })
  })
})
