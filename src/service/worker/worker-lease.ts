/** This process as a worker of the database: its lease, renewed by heartbeats, and the removal of expired leases. */
import type { Clock, Disarm } from '../../host/clock.js'
import { newWorkerId } from '../secrets.js'
import type { CrashLimit, Store, WorkerRecord } from '../store/contract.js'
import { isRefusal, MAX_REFUSALS, NOT_RECORDED } from './not-recorded.js'

const HEARTBEAT_MS = 5_000
/** A lease expires when its heartbeat has not changed for so long. */
const LEASE_MS = 30_000
/**
 * A worker that has lost its connection to the database may connect again within this time. Then its process is taken for dead:
 * from the database, a process that cannot be reached looks the same, so its runs count a crash.
 */
const RECONNECT_MS = 3_000

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
  /**
   * `stopWork` is called when the lease was lost: others have reaped this worker although it lives. Once it has resolved, the
   * lease is acquired again.
   */
  onLost(stopWork: () => Promise<void>): void
  /** Ends the lease; what is being rendered returns to the queue. */
  release(): Promise<void>
}

export interface WorkerLeaseOptions {
  readonly store: Pick<Store, 'renewLease' | 'extendLease' | 'listWorkers' | 'reapWorker' | 'releaseWorker'>
  readonly clock: Pick<Clock, 'now' | 'monotonic' | 'alarm'>
  onError(error: unknown): void
}

/** What this process has seen of another worker, by its own clock. */
interface Sighting {
  readonly heartbeatAtMs: number
  readonly changedAtMs: number
  readonly disconnectedAtMs: number | undefined
}

export function createWorkerLease({ store, clock, onError }: WorkerLeaseOptions): WorkerLease {
  const id = newWorkerId()
  let acquired: Promise<void> | undefined
  let stopWork = async () => {}
  let disarm: Disarm = () => {}
  let isEntered = false
  let released = false

  function scheduleHeartbeat(): void {
    disarm()
    disarm = clock.alarm(HEARTBEAT_MS, async () => {
      if (!released) await sendHeartbeat().catch(onError)
      if (!released) scheduleHeartbeat()
    })
  }

  async function sendHeartbeat(): Promise<void> {
    if (await store.extendLease(id)) return
    // Nothing is claimed meanwhile: a worker without a lease gets no run.
    acquired = acquireAfter(stopWork())
    await acquired
  }

  async function acquireAfter(stopped: Promise<void>): Promise<void> {
    try {
      await stopped
      if (!released) await store.renewLease(id)
    } catch (error) {
      // A full disk, for example: the next call tries again.
      acquired = undefined
      throw error
    }
  }

  const sightings = new Map<string, Sighting>()
  /** How often the database has refused to remove these workers. */
  const refusals = new Map<string, number>()

  /** A worker that cannot be removed keeps its own runs waiting, and not those of others. */
  async function reap(worker: WorkerRecord): Promise<boolean> {
    const refused = refusals.get(worker.id) ?? 0
    const limit =
      refused < MAX_REFUSALS ? CRASH_LIMIT : { ...CRASH_LIMIT, failure: NOT_RECORDED, refunds: false }
    try {
      const isReaped = (await store.reapWorker(worker, limit, clock.now())) !== undefined
      refusals.delete(worker.id)
      return isReaped
    } catch (error) {
      if (isRefusal(error)) refusals.set(worker.id, refused + 1)
      onError(error)
      return false
    }
  }

  function see({ id: other, heartbeatAtMs, isDisconnected = false }: WorkerRecord): Sighting {
    const nowMs = clock.monotonic()
    const last = sightings.get(other)
    const known = last?.heartbeatAtMs === heartbeatAtMs ? last : undefined
    const sighting = {
      heartbeatAtMs,
      changedAtMs: known?.changedAtMs ?? nowMs,
      disconnectedAtMs: isDisconnected ? (known?.disconnectedAtMs ?? nowMs) : undefined,
    }
    sightings.set(other, sighting)
    return sighting
  }

  /**
   * The other workers whose lease has expired: the heartbeat has not changed for `LEASE_MS` by the clock of this process.
   * The clocks of two machines are never compared, and a clock that is set anew ends no lease.
   */
  function expired(workers: readonly WorkerRecord[]): readonly WorkerRecord[] {
    const nowMs = clock.monotonic()
    const others = workers.filter((worker) => worker.id !== id)
    for (const known of sightings.keys())
      if (!others.some((worker) => worker.id === known)) sightings.delete(known)
    return others.filter((worker) => {
      const { changedAtMs, disconnectedAtMs = nowMs } = see(worker)
      return worker.hasEnded || nowMs - changedAtMs > LEASE_MS || nowMs - disconnectedAtMs >= RECONNECT_MS
    })
  }

  return {
    id,
    acquire() {
      acquired ??= acquireAfter(Promise.resolve()).then(() => {
        if (!isEntered) scheduleHeartbeat()
        isEntered = true
      })
      return acquired
    },
    async reapExpiredWorkers() {
      const reaped: string[] = []
      for (const worker of expired(await store.listWorkers())) if (await reap(worker)) reaped.push(worker.id)
      return reaped
    },
    onLost(listener) {
      stopWork = listener
    },
    async release() {
      released = true
      disarm()
      if (isEntered || acquired !== undefined) await store.releaseWorker(id, clock.now())
    },
  }
}
