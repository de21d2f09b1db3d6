/** The refund of a canceled run, where the worker of the run may still send it. */
import { expect, test } from 'vitest'
import type { CancelEnd, StoredJob } from '../../../src/service/engines/engine.js'
import { PREVIEW_DOCUMENTS } from '../../../src/service/models/served-model.js'
import { LOCAL_MODELS } from '../../../src/service/rules/names.js'
import { createStopCanceled } from '../../../src/service/worker/canceled-runs.js'
import { createManualClock } from '../../support/index.js'

const SENT: StoredJob = { intent: { id: 'i', sentAtMs: 1, endpoint: 'create' } }

test.each<[what: string, before: StoredJob | undefined, after: StoredJob | undefined, refunded: string]>([
  ['was sent in between', undefined, SENT, 'unknown'],
  ['is as it was', undefined, undefined, 'refunded'],
])(
  'a decision that could not be recorded counts only while the run %s',
  async (_, before, after, refunded) => {
    const settled: string[] = []
    const failures: unknown[] = []
    let stored = before
    const stopCanceled = createStopCanceled({
      modelOf: async () => ({ document: PREVIEW_DOCUMENTS.image, mayCost: true }),
      worker: 'w1',
      held: new Map(),
      closing: new AbortController().signal,
      clock: createManualClock(),
      claimsEnded: () => undefined,
      onError: (error) => failures.push(error),
      engine: {
        cancel: async (run): Promise<CancelEnd> =>
          run.stored === undefined ? 'not charged' : 'not canceled',
      },
      store: {
        findStopping: async () => [
          { id: 'run_1', model: LOCAL_MODELS.image, owner: 'w0', canceledAtMs: 0, stored },
        ],
        async settleCanceled(_id, end, _nowMs, of) {
          if (failures.length === 0) {
            stored = after
            throw new Error('the database is locked')
          }
          expect(of).toEqual(stored)
          settled.push(end)
          return { runs: 1, refunded: 0 }
        },
      },
    })
    for (const expected of [0, 1]) {
      await stopCanceled()
      await new Promise((resolve) => setImmediate(resolve))
      expect([failures.length, settled.length]).toEqual([1, expected])
    }
    expect(settled).toEqual([refunded])
  },
)
