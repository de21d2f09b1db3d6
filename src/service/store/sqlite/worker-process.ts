/** Which process a worker is. On one machine a lease ends with its process, and need not run to its end. */
import { hostname } from 'node:os'
import { machineId, processExists } from '../../../host/processes.js'

export interface WorkerProcess {
  /** Host name, boot and namespace of process ids: two containers may have one host name. */
  readonly host: string
  readonly pid: number
  /** Start of the process, in milliseconds since the epoch: a process id alone may be reused. */
  readonly bornAtMs: number
}

/** This process, and what it can see of others on the same machine. */
export interface ThisProcess extends WorkerProcess {
  processExists(pid: number): boolean
}

export const thisProcess = (): ThisProcess => ({
  host: `${hostname()} ${machineId()}`.trim(),
  pid: process.pid,
  bornAtMs: Math.round(performance.timeOrigin),
  processExists,
})

/**
 * On this machine a dead process is seen at once: its id is free, or is ours although it began at another time (in a
 * container every start of the service gets the same id). If an unrelated process has taken the id, the lease runs to its
 * end, as it does on another machine.
 */
export function hasEnded(worker: WorkerProcess, here: ThisProcess): boolean {
  if (worker.host !== here.host) return false
  if (worker.pid === here.pid) return worker.bornAtMs !== here.bornAtMs
  return !here.processExists(worker.pid)
}
