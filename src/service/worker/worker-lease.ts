/** This process among the workers of a data folder: its own lease, and the burial of those whose process is gone. */
import { hostname } from 'node:os'
import type { Clock, Disarm } from '../../host/clock.js'
import { processExists } from '../../host/processes.js'
import { newWorkerId } from '../secrets.js'
import type { CrashLimit, Store, WorkerRecord } from '../store/contract.js'
import { HEARTBEAT_MS, isExpired, type LocalProcess } from './lease-expiry.js'

export const CRASH_LIMIT: CrashLimit = {
  crashes: 3,
  failure: {
    code: 'renderer_died',
    message: 'The renderer died three times while it made this run, so the run was given up.',
  },
}

export interface WorkerLease {
  readonly id: string
  /** Enters this process among the workers, once; its lease is renewed until it leaves. */
  join(): Promise<void>
  /** Removes the workers whose process is gone, so that their runs are orphans; their ids. */
  reapExpiredWorkers(): Promise<readonly string[]>
  /** Gives back what is being rendered. */
  leave(): Promise<void>
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
  let joined: Promise<void> | undefined
  let disarm: Disarm = () => {}
  let left = false

  const { host, pid, bornAtMs } = here
  const record = (): WorkerRecord => ({ id, host, pid, bornAtMs, heartbeatAtMs: clock.now() })

  function keepHeartBeating(): void {
    disarm = clock.alarm(HEARTBEAT_MS, async () => {
      try {
        if (!left) await store.renewLease(record())
      } catch (error) {
        onError(error)
      }
      if (!left) keepHeartBeating()
    })
  }

  async function enter(): Promise<void> {
    await store.renewLease(record())
    keepHeartBeating()
  }

  return {
    id,
    join() {
      joined ??= enter()
      return joined
    },
    async reapExpiredWorkers() {
      const nowMs = clock.now()
      const buried: string[] = []
      for (const worker of await store.listWorkers())
        if (worker.id !== id && isExpired(worker, nowMs, here))
          if (await store.reapWorker(worker, CRASH_LIMIT, nowMs)) buried.push(worker.id)
      return buried
    },
    async leave() {
      left = true
      disarm()
      if (joined !== undefined) await store.releaseWorker(id)
    },
  }
}

export const thisProcess = (): LocalProcess => ({
  host: hostname(),
  pid: process.pid,
  bornAtMs: Math.round(performance.timeOrigin),
  processExists,
})
