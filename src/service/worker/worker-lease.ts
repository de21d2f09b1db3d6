/** This process among the workers of a data folder: its own lease, and the burial of those whose process is gone. */
import { hostname } from 'node:os'
import type { Clock, Disarm } from '../../host/clock.js'
import { processExists } from '../../host/processes.js'
import { newWorkerId } from '../secrets.js'
import type { DeathLimit, Store, WorkerRecord } from '../store/contract.js'
import { HEARTBEAT_MS, isDead, type Neighbourhood } from './lease-expiry.js'

export const DEATH_LIMIT: DeathLimit = {
  deaths: 3,
  failure: {
    code: 'renderer_died',
    message: 'The renderer died three times while it made this run, so the run was given up.',
  },
}

export interface Presence {
  readonly id: string
  /** Enters this process among the workers, once; its lease is renewed until it leaves. */
  join(): Promise<void>
  /** Removes the workers whose process is gone, so that their runs are orphans; their ids. */
  buryTheDead(): Promise<readonly string[]>
  /** Gives back what is being rendered. */
  leave(): Promise<void>
}

export interface PresenceOptions {
  readonly store: Pick<Store, 'keepWorker' | 'listWorkers' | 'buryWorker' | 'dismissWorker'>
  readonly clock: Pick<Clock, 'now' | 'alarm'>
  readonly here?: Neighbourhood
  onError(error: unknown): void
}

export function createPresence({ store, clock, here = thisProcess(), onError }: PresenceOptions): Presence {
  const id = newWorkerId()
  let joined: Promise<void> | undefined
  let disarm: Disarm = () => {}
  let left = false

  const { host, pid, bornAtMs } = here
  const record = (): WorkerRecord => ({ id, host, pid, bornAtMs, heartbeatAtMs: clock.now() })

  function keepHeartBeating(): void {
    disarm = clock.alarm(HEARTBEAT_MS, async () => {
      try {
        if (!left) await store.keepWorker(record())
      } catch (error) {
        onError(error)
      }
      if (!left) keepHeartBeating()
    })
  }

  async function enter(): Promise<void> {
    await store.keepWorker(record())
    keepHeartBeating()
  }

  return {
    id,
    join() {
      joined ??= enter()
      return joined
    },
    async buryTheDead() {
      const nowMs = clock.now()
      const buried: string[] = []
      for (const worker of await store.listWorkers())
        if (worker.id !== id && isDead(worker, nowMs, here))
          if (await store.buryWorker(worker, DEATH_LIMIT, nowMs)) buried.push(worker.id)
      return buried
    },
    async leave() {
      left = true
      disarm()
      if (joined !== undefined) await store.dismissWorker(id)
    },
  }
}

export const thisProcess = (): Neighbourhood => ({
  host: hostname(),
  pid: process.pid,
  bornAtMs: Math.round(performance.timeOrigin),
  processExists,
})
