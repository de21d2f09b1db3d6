/**
 * The lease of this worker, renewed by heartbeats, and the removal of other workers whose lease has expired: of their
 * records, and of the folders that they left.
 */
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock, Disarm } from '../../host/clock.js'
import { removeFolder } from '../../host/own-folder.js'
import { errorCode } from '../../host/system-error.js'
import { newWorkerId } from '../secrets.js'
import type { Store, WorkerRecord } from '../store/contract.js'
import { CRASH_LIMIT, isRefusal, MAX_REFUSALS, NOT_RECORDED } from './run-failure.js'

const HEARTBEAT_MS = 5_000
/** A lease expires when its heartbeat has not changed for this long. */
const LEASE_MS = 30_000
/**
 * A worker that has lost its connection to the database may reconnect within this time. After that it counts as crashed: the
 * database cannot distinguish an unreachable process from one that has ended.
 */
const RECONNECT_MS = 3_000

export interface WorkerLease {
  readonly id: string
  /** Records this process as a worker, once, and renews its lease until `release`. */
  acquire(): Promise<void>
  /** Removes the workers whose lease has expired, so that their runs return to the queue. Returns their ids. */
  reapExpiredWorkers(): Promise<readonly string[]>
  /**
   * `stopWork` is called when the lease was lost: another worker has reaped this one although it runs. Once it has resolved, the
   * lease is acquired again.
   */
  onLost(stopWork: () => Promise<void>): void
  /** Ends the lease; the runs of this worker return to the queue. */
  release(): Promise<void>
}

export interface WorkerLeaseOptions {
  readonly store: Pick<Store, 'renewLease' | 'extendLease' | 'listWorkers' | 'reapWorker' | 'releaseWorker'>
  readonly clock: Pick<Clock, 'now' | 'monotonic' | 'alarm'>
  onError(error: unknown): void
}

/** The heartbeat of another worker, as this process has observed it. The other times are of the clock of this process. */
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
    // Without a lease this worker cannot claim a run.
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

  const observed = new Map<string, ObservedHeartbeat>()
  /** How often the database has refused to remove these workers. */
  const refusals = new Map<string, number>()

  /** False when the worker cannot be removed: its runs have to wait, those of other workers do not. */
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

  function observe({ id: other, heartbeatAtMs, isDisconnected = false }: WorkerRecord): ObservedHeartbeat {
    const nowMs = clock.monotonic()
    const last = observed.get(other)
    const known = last?.heartbeatAtMs === heartbeatAtMs ? last : undefined
    const heartbeat = {
      heartbeatAtMs,
      changedAtMs: known?.changedAtMs ?? nowMs,
      disconnectedAtMs: isDisconnected ? (known?.disconnectedAtMs ?? nowMs) : undefined,
    }
    observed.set(other, heartbeat)
    return heartbeat
  }

  /**
   * The other workers whose lease has expired: the heartbeat has not changed for `LEASE_MS` by the clock of this process.
   * The clocks of two machines are never compared, and a change of the system time ends no lease.
   */
  function expired(workers: readonly WorkerRecord[]): readonly WorkerRecord[] {
    const nowMs = clock.monotonic()
    const others = workers.filter((worker) => worker.id !== id)
    for (const known of observed.keys())
      if (!others.some((worker) => worker.id === known)) observed.delete(known)
    return others.filter((worker) => {
      const { changedAtMs, disconnectedAtMs = nowMs } = observe(worker)
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

/** A younger folder may belong to a service with another database. */
const ABANDONED_AFTER_MS = 3_600_000

/**
 * Removes the work folders of workers that are no longer in the database, after an hour without a new file. They contain
 * references and incomplete outputs.
 */
export async function removeAbandonedFolders({
  work,
  store,
  clock,
  onError,
}: {
  /** Contains `<worker>/<run>`. */
  readonly work: string
  readonly store: Pick<Store, 'listWorkers'>
  readonly clock: Pick<Clock, 'now'>
  onError(error: unknown): void
}): Promise<void> {
  // Read before the database: a worker is recorded before it makes its folder.
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
