/** Whether a worker's lease has expired. Pure: what the system says is passed in as values. */
import type { WorkerRecord } from '../store/contract.js'

export const HEARTBEAT_MS = 5_000
export const LEASE_MS = 30_000

/** This process, and what it can see of others on the same machine. */
export interface LocalProcess {
  readonly host: string
  readonly pid: number
  readonly bornAtMs: number
  processExists(pid: number): boolean
}

/**
 * A lease expires when its heartbeat has not changed for `LEASE_MS`, by the clock of who watches it: two machines' clocks
 * are never compared, and a clock that is set anew ends no lease. On the same machine a dead process is seen at once: its
 * id is free, or is ours although it began at another time (in a container every start of the service gets the same id).
 * If an unrelated process has taken the id, the lease runs to its end.
 */
export function isExpired(worker: WorkerRecord, unchangedMs: number, here: LocalProcess): boolean {
  if (unchangedMs > LEASE_MS) return true
  if (worker.host !== here.host) return false
  if (worker.pid === here.pid) return worker.bornAtMs !== here.bornAtMs
  return !here.processExists(worker.pid)
}
