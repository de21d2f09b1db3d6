/** The refund of a canceled run, where the worker of the run may still send it. */
import { expect, test } from 'vitest'
import type { Charge, StoredJob } from '../../../src/service/engines/engine.js'
import { PREVIEW_DOCUMENTS } from '../../../src/service/models/served-model.js'
import { LOCAL_MODELS } from '../../../src/service/rules/names.js'
import { createCanceledRuns } from '../../../src/service/worker/canceled-runs.js'
import { createManualClock } from '../../support/clock.js'

const SENT: StoredJob = { intent: { id: 'i', sentAtMs: 1, endpoint: 'create' } }

test.each<[what: string, before: StoredJob | undefined, after: StoredJob | undefined, refunded: boolean]>([
  ['was sent in between', undefined, SENT, false],
  ['is as it was', undefined, undefined, true],
])(
  'a decision that could not be recorded counts only while the run %s',
  async (_, before, after, refunded) => {
    const settled: (boolean | undefined)[] = []
    const failures: unknown[] = []
    let stored = before
    const canceled = createCanceledRuns({
      modelOf: async () => ({ document: PREVIEW_DOCUMENTS.image, mayCost: true }),
      worker: 'w1',
      closing: new AbortController().signal,
      clock: createManualClock(),
      claimsEnded: () => undefined,
      onError: (error) => failures.push(error),
      engine: {
        cancel: async (run): Promise<Charge> => (run.stored === undefined ? 'not charged' : 'unknown'),
      },
      store: {
        findStopping: async () => [
          { id: 'run_1', model: LOCAL_MODELS.image, owner: 'w0', canceledAtMs: 0, stored },
        ],
        async settleCanceled(_id, isRefunded, _nowMs, of) {
          if (failures.length === 0) {
            stored = after
            throw new Error('the database is locked')
          }
          expect(of).toEqual(stored)
          settled.push(isRefunded)
          return { runs: 1, refunded: 0 }
        },
      },
    })
    for (const expected of [0, 1]) {
      await canceled.stop()
      await new Promise((resolve) => setImmediate(resolve))
      expect([failures.length, settled.length]).toEqual([1, expected])
    }
    expect(settled).toEqual([refunded])
  },
)
