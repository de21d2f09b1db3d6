import { describe, expect, test } from 'vitest'
import { attemptsOf } from '../../../src/service/console/run-shapes.js'

const at = (second: number): string => new Date(second * 1_000).toISOString()
const lost = (from: number, until: number, result: 'crashed' | 'returned') => ({
  startedAtMs: from * 1_000,
  endedAtMs: until * 1_000,
  result,
})
const run = (status: 'queued' | 'processing' | 'succeeded' | 'failed', from?: number, until?: number) => ({
  status,
  startedAtMs: from === undefined ? undefined : from * 1_000,
  finishedAtMs: until === undefined ? undefined : until * 1_000,
})

describe('the attempts of a run', () => {
  test.each([
    ['queued', run('queued'), [], []],
    ['in progress', run('processing', 1), [], [[1, null, null]]],
    ['succeeded', run('succeeded', 1, 3), [], [[1, 3, 'succeeded']]],
    ['failed', run('failed', 1, 3), [], [[1, 3, 'failed']]],
    ['back in the queue', run('queued'), [lost(1, 2, 'crashed')], [[1, 2, 'crashed']]],
    [
      'again in progress',
      run('processing', 5),
      [lost(1, 2, 'returned')],
      [
        [1, 2, 'returned'],
        [5, null, null],
      ],
    ],
    [
      'again, within the same second',
      run('processing', 1),
      [lost(1, 1, 'crashed')],
      [
        [1, 1, 'crashed'],
        [1, null, null],
      ],
    ],
    [
      'failed by the third crash',
      run('failed', 5, 6),
      [lost(1, 2, 'crashed'), lost(3, 4, 'crashed')],
      [
        [1, 2, 'crashed'],
        [3, 4, 'crashed'],
        [5, 6, 'failed'],
      ],
    ],
  ] as const)('%s', (_name, each, before, attempts) =>
    expect(attemptsOf(each, before)).toEqual(
      attempts.map(([from, until, result]) => ({
        started_at: at(from),
        ended_at: until === null ? null : at(until),
        result,
      })),
    ),
  )
})
