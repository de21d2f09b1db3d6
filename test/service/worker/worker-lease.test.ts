import { expect, test } from 'vitest'
import type { WorkerRecord } from '../../../src/service/store/contract.js'
import { LEASE_MS } from '../../../src/service/worker/lease-expiry.js'
import { createWorkerLease } from '../../../src/service/worker/worker-lease.js'
import { createManualClock } from '../../support/clock.js'

test('a worker whose own heartbeat is late reaps the others, and not itself', async () => {
  const clock = createManualClock()
  const workers: WorkerRecord[] = []
  const reaped: string[] = []
  const lease = createWorkerLease({
    clock,
    here: { host: 'here', pid: 1, bornAtMs: 0, processExists: () => true },
    store: {
      renewLease: async (worker) => void workers.push(worker),
      listWorkers: async () => workers,
      reapWorker: async ({ id }) => reaped.push(id) > 0,
      releaseWorker: async () => {},
    },
    onError: (error) => {
      throw error
    },
  })
  await lease.acquire()
  const [own] = workers
  if (own === undefined) throw new Error('no lease')
  const late = { ...own, heartbeatAtMs: clock.now() - LEASE_MS - 1 }
  workers.splice(0, 1, late, { ...late, id: 'other', host: 'elsewhere' })
  expect(await lease.reapExpiredWorkers()).toEqual(['other'])
  expect(reaped).toEqual(['other'])
  await lease.release()
})
