import { expect, test } from 'vitest'
import type { Heartbeat, WorkerRecord } from '../../../src/service/store/contract.js'
import { createWorkerLease } from '../../../src/service/worker/worker-lease.js'
import { createManualClock } from '../../support/clock.js'

/** Services on one database, as rows. Only heartbeats tell whether they live. */
function createLeases() {
  const clock = createManualClock()
  const rows = new Map<string, WorkerRecord>()
  const reaped: string[] = []
  /** With how each reap would fail the runs at the crash limit. */
  const limits: string[] = []
  const refused = new Set<string>()
  let isFull = false
  const store = {
    async renewLease(id: string) {
      if (isFull) throw Object.assign(new Error('full'), { code: 'SQLITE_FULL' })
      rows.set(id, { id, heartbeatAtMs: clock.now(), hasEnded: false })
    },
    async extendLease(id: string) {
      if (!rows.has(id)) return false
      await store.renewLease(id)
      return true
    },
    listWorkers: async () => [...rows.values()],
    async reapWorker({ id }: Heartbeat) {
      if (refused.has(id)) throw Object.assign(new Error(id), { code: '23514' })
      reaped.push(id)
      return rows.delete(id) ? { runs: 0, refunded: 0 } : undefined
    },
    async releaseWorker(id: string) {
      rows.delete(id)
    },
  }
  const createLease = () => createWorkerLease({ store, clock, onError: () => {} })
  const fill = (full: boolean) => {
    isFull = full
  }
  return { clock, rows, reaped, limits, refused, createLease, fill }
}

test('a clock that jumps by an hour ends no lease', async () => {
  const { clock, reaped, createLease } = createLeases()
  const [one, other] = [createLease(), createLease()]
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

test('a worker without a heartbeat for 30 s is reaped, whatever its clock shows', async () => {
  const { clock, rows, reaped, createLease } = createLeases()
  const one = createLease()
  await one.acquire()
  rows.set('gone', { id: 'gone', heartbeatAtMs: clock.now() + 9e9, hasEnded: false })
  for (let seconds = 0; seconds < 30; seconds += 5) {
    expect(await one.reapExpiredWorkers()).toEqual([])
    await clock.advance(5_000)
  }
  await clock.advance(1_000)
  expect(await one.reapExpiredWorkers()).toEqual(['gone'])
  expect(reaped).toEqual(['gone'])
  await one.release()
})

test('a worker whose process has ended is reaped at once', async () => {
  const { clock, rows, createLease } = createLeases()
  const one = createLease()
  await one.acquire()
  rows.set('gone', { id: 'gone', heartbeatAtMs: clock.now(), hasEnded: true })
  expect(await one.reapExpiredWorkers()).toEqual(['gone'])
  await one.release()
})

test('a worker that cannot be reaped does not delay others, and is tried again', async () => {
  const { rows, reaped, refused, createLease } = createLeases()
  const one = createLease()
  await one.acquire()
  refused.add('damaged')
  for (const id of ['damaged', 'other']) rows.set(id, { id, heartbeatAtMs: 0, hasEnded: true })
  expect(await one.reapExpiredWorkers()).toEqual(['other'])
  expect(await one.reapExpiredWorkers()).toEqual([])
  refused.clear()
  expect(await one.reapExpiredWorkers()).toEqual(['damaged'])
  expect(reaped).toEqual(['other', 'damaged'])
  await one.release()
})

test('a lease that could not be written is acquired by the next call', async () => {
  const { rows, createLease, fill } = createLeases()
  const one = createLease()
  fill(true)
  await expect(one.acquire()).rejects.toMatchObject({ code: 'SQLITE_FULL' })
  fill(false)
  await one.acquire()
  expect([...rows.keys()]).toEqual([one.id])
  await one.release()
})

test('a worker that is disconnected for more than 3 s is reaped, unless it reconnects', async () => {
  const { clock, rows, reaped, createLease } = createLeases()
  const one = createLease()
  await one.acquire()
  const see = async (seconds: number, isDisconnected: boolean, heartbeatAtMs = 0) => {
    for (let second = 0; second < seconds; second++) {
      rows.set('other', { id: 'other', heartbeatAtMs, hasEnded: false, isDisconnected })
      await one.reapExpiredWorkers()
      await clock.advance(1_000)
    }
  }
  await see(3, true)
  await see(1, false)
  await see(3, true)
  // It was connected between, which this process did not see.
  await see(3, true, 1)
  expect(reaped).toEqual([])
  await see(1, true, 1)
  expect(reaped).toEqual(['other'])
  await one.release()
})

test('a live worker that was reaped stops its work before it acquires a lease again', async () => {
  const { clock, rows, createLease } = createLeases()
  const one = createLease()
  const steps: string[] = []
  one.onLost(async () => {
    steps.push(`stops, with ${rows.size} leases`)
    await clock.sleep(500)
    steps.push(`has stopped, with ${rows.size} leases`)
  })
  await one.acquire()
  await clock.advance(5_000)
  expect(steps).toEqual([])
  rows.clear()
  await clock.advance(5_000)
  await clock.runUntil(one.acquire())
  steps.push('acquired')
  expect(steps).toEqual(['stops, with 0 leases', 'has stopped, with 0 leases', 'acquired'])
  expect([...rows.keys()]).toEqual([one.id])
  await one.release()
  await clock.advance(60_000)
  expect([...rows.keys()]).toEqual([])
})
