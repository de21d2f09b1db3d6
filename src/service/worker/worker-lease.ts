/**
 * Renews the lease of this worker by heartbeats. Removes the records and the abandoned folders of other workers whose
 * lease has expired.
 */
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock, Disarm } from '../../host/clock.js'
import { removeFolder } from '../../host/own-folder.js'
import { errorCode } from '../../host/system-error.js'
import { newWorkerId } from '../secrets.js'
import type { WorkerRecord, WorkerStore } from '../store/contract.js'
import { CRASH_LIMIT } from './run-failure.js'

const HEARTBEAT_MS = 5_000
/** A lease expires when its heartbeat has not changed for this time. */
const LEASE_MS = 30_000
/**
 * Time that a worker has to reconnect after it lost its connection to the database. After this time, the worker counts
 * as crashed: the database cannot distinguish an unreachable process from an ended process.
 */
const RECONNECT_MS = 3_000

export interface WorkerLease {
  readonly id: string
  /** Records this process as a worker, once, and renews its lease until `release`. */
  acquire(): Promise<void>
  /**
   * Removes the workers whose lease has expired, so that their runs return to the queue. Returns the ids of these
   * workers.
   */
  reapExpiredWorkers(): Promise<readonly string[]>
  /**
   * Sets the function to call when the lease is lost, which means that another worker reaped this worker although it
   * still runs. When `stopWork` has resolved, the lease is acquired again.
   */
  onLost(stopWork: () => Promise<void>): void
  /** Ends the lease. The runs of this worker return to the queue. */
  release(): Promise<void>
}

export interface WorkerLeaseOptions {
  readonly store: WorkerStore
  readonly clock: Clock
  onError(error: unknown): void
}

/**
 * The last observed heartbeat of another worker. `changedAtMs` and `disconnectedAtMs` are times on the clock of this
 * process.
 */
interface ObservedHeartbeat {
  readonly heartbeatAtMs: number
  readonly changedAtMs: number
  readonly disconnectedAtMs: number | undefined
}

export function createWorkerLease({ store, clock, onError }: WorkerLeaseOptions): WorkerLease {
  const id = newWorkerId()
  let acquired: Promise<void> | undefined
  let stopWork = async () => {}
  let disarm: Disarm = () => {}
  let isHeartbeatScheduled = false
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
    // Set at once: until the lease is acquired again, this worker must not claim a run.
    acquired = acquireAfter(stopWork())
    await acquired
  }

  async function acquireAfter(stopped: Promise<void>): Promise<void> {
    try {
      await stopped
      if (!released) await store.renewLease(id)
    } catch (error) {
      // For example a full disk. The next call of `acquire` tries again.
      acquired = undefined
      throw error
    }
  }

  const observed = new Map<string, ObservedHeartbeat>()
  /** Returns false when the worker cannot be removed. Only the runs of this worker then have to wait. */
  async function reap(worker: WorkerRecord): Promise<boolean> {
    try {
      return (await store.reapWorker(worker, CRASH_LIMIT, clock.now())) !== undefined
    } catch (error) {
      onError(error)
      return false
    }
  }

  function observe({ id: other, heartbeatAtMs, isDisconnected = false }: WorkerRecord): ObservedHeartbeat {
    const nowMs = clock.monotonic()
    const last = observed.get(other)
    const previous = last?.heartbeatAtMs === heartbeatAtMs ? last : undefined
    const heartbeat = {
      heartbeatAtMs,
      changedAtMs: previous?.changedAtMs ?? nowMs,
      disconnectedAtMs: isDisconnected ? (previous?.disconnectedAtMs ?? nowMs) : undefined,
    }
    observed.set(other, heartbeat)
    return heartbeat
  }

  /**
   * Returns the other workers whose lease has expired: their heartbeat has not changed for `LEASE_MS`, measured by the
   * monotonic clock of this process. Clocks of two machines are never compared, and a change of the system time does
   * not end a lease.
   */
  function expired(workers: readonly WorkerRecord[]): readonly WorkerRecord[] {
    const nowMs = clock.monotonic()
    const others = workers.filter((worker) => worker.id !== id)
    for (const observedId of observed.keys())
      if (!others.some((worker) => worker.id === observedId)) observed.delete(observedId)
    return others.filter((worker) => {
      const { changedAtMs, disconnectedAtMs = nowMs } = observe(worker)
      return worker.hasEnded || nowMs - changedAtMs > LEASE_MS || nowMs - disconnectedAtMs >= RECONNECT_MS
    })
  }

  return {
    id,
    acquire() {
      acquired ??= acquireAfter(Promise.resolve()).then(() => {
        if (!isHeartbeatScheduled) scheduleHeartbeat()
        isHeartbeatScheduled = true
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
      if (isHeartbeatScheduled || acquired !== undefined) await store.releaseWorker(id)
    },
  }
}

/** Minimum age of an abandoned folder. A newer folder may belong to a service that uses another database. */
const ABANDONED_AFTER_MS = 3_600_000

/**
 * Removes the work folders of workers that are no longer in the database, one hour after the last change in the folder.
 * These folders contain references and incomplete outputs.
 */
export async function removeAbandonedFolders({
  work,
  store,
  clock,
  onError,
}: {
  /** Folder with the work folders of all workers: `<worker>/<run>`. */
  readonly work: string
  readonly store: WorkerStore
  readonly clock: Clock
  onError(error: unknown): void
}): Promise<void> {
  // Read the folder before the database: a worker is recorded before it creates its folder, so that no folder of an
  // active worker looks abandoned.
  const entries = await readdir(work, { withFileTypes: true }).catch(() => [])
  const names = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
  if (names.length === 0) return
  const alive = new Set((await store.listWorkers()).map(({ id }) => id))
  for (const name of names.filter((each) => !alive.has(each))) {
    const path = join(work, name)
    try {
      if (clock.now() - (await changedAtMs(path)) > ABANDONED_AFTER_MS) await removeFolder(path)
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') onError(error)
    }
  }
}

async function changedAtMs(folder: string): Promise<number> {
  const paths = [folder, ...(await readdir(folder)).map((name) => join(folder, name))]
  const stats = await Promise.all(paths.map((path) => lstat(path)))
  return Math.max(...stats.map(({ mtimeMs }) => mtimeMs))
}
