/** This process as a worker of the data folder: its lease, renewed by heartbeats, and the removal of expired leases. */
import { hostname } from 'node:os'
import type { Clock, Disarm } from '../../host/clock.js'
import { processExists } from '../../host/processes.js'
import { newWorkerId } from '../secrets.js'
import type { CrashLimit, Store } from '../store/contract.js'
import { HEARTBEAT_MS, isExpired, type LocalProcess } from './lease-expiry.js'

export const CRASH_LIMIT: CrashLimit = {
  crashes: 3,
  failure: {
    code: 'renderer_died',
    message: 'The renderer crashed three times on this run.',
  },
}

export interface WorkerLease {
  readonly id: string
  /** Enters this process among the workers, once; its lease is renewed until `release`. */
  acquire(): Promise<void>
  /** Removes the workers whose lease has expired, so that their runs become orphans; their ids. */
  reapExpiredWorkers(): Promise<readonly string[]>
  /** Ends the lease; what is being rendered returns to the queue. */
  release(): Promise<void>
}

export interface WorkerLeaseOptions {
  readonly store: Pick<Store, 'renewLease' | 'listWorkers' | 'reapWorker' | 'releaseWorker'>
  readonly clock: Pick<Clock, 'now' | 'alarm'>
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

  return {
    id,
    acquire() {
      acquired ??= renew().then(scheduleHeartbeat)
      return acquired
    },
    async reapExpiredWorkers() {
      const nowMs = clock.now()
      const reaped: string[] = []
      for (const worker of await store.listWorkers())
        if (worker.id !== id && isExpired(worker, nowMs, here))
          if (await store.reapWorker(worker, CRASH_LIMIT, nowMs)) reaped.push(worker.id)
      return reaped
    },
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
