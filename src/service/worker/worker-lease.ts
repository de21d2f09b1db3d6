/** This process as a worker of the data folder: its lease, renewed by heartbeats, and the removal of expired leases. */
import { hostname } from 'node:os'
import type { Clock, Disarm } from '../../host/clock.js'
import { processExists } from '../../host/processes.js'
import { newWorkerId } from '../secrets.js'
import type { CrashLimit, Store, WorkerRecord } from '../store/contract.js'
import { HEARTBEAT_MS, isExpired, type LocalProcess } from './lease-expiry.js'

export const CRASH_LIMIT: CrashLimit = {
  crashes: 3,
  failure: {
    code: 'renderer_crashed',
    message: 'The renderer crashed three times on this run.',
  },
}

export interface WorkerLease {
  readonly id: string
  /** Enters this process among the workers, once; its lease is renewed until `release`. */
  acquire(): Promise<void>
  /** Removes the workers whose lease has expired, so that their runs become orphans; their ids. */
  reapExpiredWorkers(): Promise<readonly string[]>
  /** A write to the database, to see whether it is possible. */
  renew(): Promise<void>
  /** Ends the lease; what is being rendered returns to the queue. */
  release(): Promise<void>
}

export interface WorkerLeaseOptions {
  readonly store: Pick<Store, 'renewLease' | 'listWorkers' | 'reapWorker' | 'releaseWorker'>
  readonly clock: Pick<Clock, 'now' | 'monotonic' | 'alarm'>
  readonly here?: LocalProcess
  onError(error: unknown): void
}

export function createWorkerLease({
  store,
  clock,
  here = thisProcess(),
  onError,
}: WorkerLeaseOptions): WorkerLease {
  const id = newWorkerId()
  let acquired: Promise<void> | undefined
  let disarm: Disarm = () => {}
  let released = false

  const { host, pid, bornAtMs } = here
  const renew = () => store.renewLease({ id, host, pid, bornAtMs, heartbeatAtMs: clock.now() })

  function scheduleHeartbeat(): void {
    disarm = clock.alarm(HEARTBEAT_MS, async () => {
      if (!released) await renew().catch(onError)
      if (!released) scheduleHeartbeat()
    })
  }

  const lastChanges = new Map<string, { readonly heartbeatAtMs: number; readonly atMs: number }>()

  /** The other workers, each with the time since its heartbeat was seen to change. */
  function watched(workers: readonly WorkerRecord[]) {
    const nowMs = clock.monotonic()
    const others = workers.filter((worker) => worker.id !== id)
    for (const known of lastChanges.keys())
      if (!others.some((worker) => worker.id === known)) lastChanges.delete(known)
    return others.map((record) => {
      const { heartbeatAtMs } = record
      const last = lastChanges.get(record.id)
      const change = last?.heartbeatAtMs === heartbeatAtMs ? last : { heartbeatAtMs, atMs: nowMs }
      lastChanges.set(record.id, change)
      return { record, unchangedMs: nowMs - change.atMs }
    })
  }

  function acquire(): Promise<void> {
    acquired ??= renew().then(scheduleHeartbeat, (error) => {
      // A full disk, for example: the next call tries again.
      acquired = undefined
      throw error
    })
    return acquired
  }

  return {
    id,
    acquire,
    async reapExpiredWorkers() {
      const reaped: string[] = []
      for (const worker of watched(await store.listWorkers()))
        if (isExpired(worker.record, worker.unchangedMs, here))
          if (await store.reapWorker(worker.record, CRASH_LIMIT, clock.now())) reaped.push(worker.record.id)
      return reaped
    },
    renew: () => acquire().then(renew),
    async release() {
      released = true
      disarm()
      if (acquired !== undefined) await store.releaseWorker(id)
    },
  }
}

const thisProcess = (): LocalProcess => ({
  host: hostname(),
  pid: process.pid,
  bornAtMs: Math.round(performance.timeOrigin),
  processExists,
})
