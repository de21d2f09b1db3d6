import { expect, test } from 'vitest'
import type { WorkerRecord } from '../../../src/service/store/contract.js'
import { createWorkerLease } from '../../../src/service/worker/worker-lease.js'
import { createManualClock } from '../../support/clock.js'

/** Services on one database, as rows. Each is on its own machine, so only heartbeats tell whether it lives. */
function createLeases() {
  const clock = createManualClock()
  const rows = new Map<string, WorkerRecord>()
  const reaped: string[] = []
  let isFull = false
  const store = {
    async renewLease(worker: WorkerRecord) {
      if (isFull) throw Object.assign(new Error('full'), { code: 'SQLITE_FULL' })
      rows.set(worker.id, worker)
    },
    listWorkers: async () => [...rows.values()],
    async reapWorker({ id }: WorkerRecord) {
      reaped.push(id)
      return rows.delete(id) ? { runs: 0, refunded: 0 } : undefined
    },
    async releaseWorker(id: string) {
      rows.delete(id)
    },
  }
  const lease = (host: string) =>
    createWorkerLease({
      store,
      clock,
      here: { host, pid: 1, bornAtMs: 0, processExists: () => true },
      onError: () => {},
    })
  const fill = (full: boolean) => {
    isFull = full
  }
  return { clock, rows, reaped, lease, fill }
}

test('a clock that jumps an hour, forward or back, ends no lease', async () => {
  const { clock, reaped, lease } = createLeases()
  const [one, other] = [lease('one'), lease('other')]
  await Promise.all([one.acquire(), other.acquire()])
  for (const hours of [1, -2, 1]) {
    await one.reapExpiredWorkers()
    await other.reapExpiredWorkers()
    clock.jump(hours * 3_600_000)
    await clock.advance(1_000)
    await one.reapExpiredWorkers()
    await other.reapExpiredWorkers()
    await clock.advance(20_000)
  }
  expect(reaped).toEqual([])
  await one.release()
  await other.release()
})

test('a worker that sends no heartbeat for 30 s is reaped, whatever its clock says', async () => {
  const { clock, rows, reaped, lease } = createLeases()
  const one = lease('one')
  await one.acquire()
  rows.set('gone', { id: 'gone', host: 'far', pid: 2, bornAtMs: 0, heartbeatAtMs: clock.now() + 9e9 })
  for (let seconds = 0; seconds < 30; seconds += 5) {
    expect(await one.reapExpiredWorkers()).toEqual([])
    await clock.advance(5_000)
  }
  await clock.advance(1_000)
  expect(await one.reapExpiredWorkers()).toEqual(['gone'])
  expect(reaped).toEqual(['gone'])
  await one.release()
})

test('a lease that could not be written is acquired by the next call', async () => {
  const { rows, lease, fill } = createLeases()
  const one = lease('one')
  fill(true)
  await expect(one.acquire()).rejects.toMatchObject({ code: 'SQLITE_FULL' })
  await expect(one.renew()).rejects.toMatchObject({ code: 'SQLITE_FULL' })
  fill(false)
  await one.acquire()
  expect([...rows.keys()]).toEqual([one.id])
  await one.release()
})
