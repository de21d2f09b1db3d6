/** This process as a worker of the database: its lease, renewed by heartbeats, and the removal of expired leases. */
import type { Clock, Disarm } from '../../host/clock.js'
import { newWorkerId } from '../secrets.js'
import type { CrashLimit, Store, WorkerRecord } from '../store/contract.js'

const HEARTBEAT_MS = 5_000
/** A lease expires when its heartbeat has not changed for so long. */
const LEASE_MS = 30_000

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
  /** Removes the workers whose lease has expired, so that their runs return to the queue; their ids. */
  reapExpiredWorkers(): Promise<readonly string[]>
  /** Ends the lease; what is being rendered returns to the queue. */
  release(): Promise<void>
}

export interface WorkerLeaseOptions {
  readonly store: Pick<Store, 'renewLease' | 'listWorkers' | 'reapWorker' | 'releaseWorker'>
  readonly clock: Pick<Clock, 'now' | 'monotonic' | 'alarm'>
  onError(error: unknown): void
}

export function createWorkerLease({ store, clock, onError }: WorkerLeaseOptions): WorkerLease {
  const id = newWorkerId()
  let acquired: Promise<void> | undefined
  let disarm: Disarm = () => {}
  let released = false

  function scheduleHeartbeat(): void {
    disarm = clock.alarm(HEARTBEAT_MS, async () => {
      if (!released) await store.renewLease(id).catch(onError)
      if (!released) scheduleHeartbeat()
    })
  }

  const lastChanges = new Map<string, { readonly heartbeatAtMs: number; readonly atMs: number }>()

  /**
   * The other workers whose lease has expired: the heartbeat has not changed for `LEASE_MS` by the clock of this process.
   * The clocks of two machines are never compared, and a clock that is set anew ends no lease.
   */
  function expired(workers: readonly WorkerRecord[]): readonly WorkerRecord[] {
    const nowMs = clock.monotonic()
    const others = workers.filter((worker) => worker.id !== id)
    for (const known of lastChanges.keys())
      if (!others.some((worker) => worker.id === known)) lastChanges.delete(known)
    return others.filter(({ id: other, heartbeatAtMs, hasEnded }) => {
      const last = lastChanges.get(other)
      const change = last?.heartbeatAtMs === heartbeatAtMs ? last : { heartbeatAtMs, atMs: nowMs }
      lastChanges.set(other, change)
      return hasEnded || nowMs - change.atMs > LEASE_MS
    })
  }

  return {
    id,
    acquire() {
      acquired ??= store.renewLease(id).then(scheduleHeartbeat, (error) => {
        // A full disk, for example: the next call tries again.
        acquired = undefined
        throw error
      })
      return acquired
    },
    async reapExpiredWorkers() {
      const reaped: string[] = []
      for (const worker of expired(await store.listWorkers()))
        if (await store.reapWorker(worker, CRASH_LIMIT, clock.now())) reaped.push(worker.id)
      return reaped
    },
    async release() {
      released = true
      disarm()
      if (acquired !== undefined) await store.releaseWorker(id)
    },
  }
}
