/** Whether the process behind a worker's row is still there. Pure: what the system says comes in as values. */
import type { WorkerRecord } from '../store/contract.js'

export const HEARTBEAT_MS = 5_000
export const LEASE_MS = 30_000

/** How this process sees itself, and its neighbours on the same machine. */
export interface LocalProcess {
  readonly host: string
  readonly pid: number
  readonly bornAtMs: number
  processExists(pid: number): boolean
}

/**
 * A lease that is not renewed ends by itself. On the same machine death shows at once: the process id is free, or is
 * ours although we began later (in a container every life of the service has the same id). An id used again by a
 * stranger looks alive until the lease ends.
 */
export function isExpired(worker: WorkerRecord, nowMs: number, here: LocalProcess): boolean {
  if (nowMs - worker.heartbeatAtMs > LEASE_MS) return true
  if (worker.host !== here.host) return false
  if (worker.pid === here.pid) return worker.bornAtMs !== here.bornAtMs
  return !here.processExists(worker.pid)
}
