/** Cancels the selected runs of the list. */
import { expect, test } from 'vitest'
import { cancelEach } from '../../src/console/runs/cancel-run.js'
import type { LocalStatus } from '../../src/protocol/run-state.js'

type Result = readonly [status: LocalStatus, isRefunded: boolean] | Error

test.each<[string, readonly Result[], string, boolean]>([
  ['one run that was queued', [['canceled', true]], 'Canceled 1 run, 1 refunded.', false],
  [
    'runs whose refund is decided later',
    [
      ['canceled', false],
      ['canceled', false],
    ],
    'Canceled 2 runs.',
    false,
  ],
  [
    'a run that ended meanwhile, and one that cannot be reached',
    [['canceled', true], ['succeeded', false], new Error('The service is overloaded.'), ['canceled', false]],
    'Canceled 2 of 4 runs, 1 refunded, 1 had ended, 1 failed: The service is overloaded.',
    true,
  ],
])(
  'cancels each run separately and reports the result in one sentence: %s',
  async (_, results, text, hasFailed) => {
    const sent: string[] = []
    const ids = results.map((_result, at) => `run_${at}`)
    const told = await cancelEach(ids, async (id) => {
      const result = results[sent.push(id) - 1]
      if (result === undefined || result instanceof Error) throw result
      return { status: result[0], is_refunded: result[1] }
    })
    expect(sent).toEqual(ids)
    expect(told).toEqual({ text, hasFailed })
  },
)
