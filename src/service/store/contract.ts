/**
 * What the service asks of its memory. Every function is one statement or one atomic step and knows no rule beyond
 * that, so that another database can take SQLite's place: the functions are asynchronous for its sake.
 */
import type { Kind } from '../../protocol/models.js'
import type { AccountState } from '../rules/budget.js'
import type { RunFailure, StoredInput, StoredOutput, StoredRun } from '../stored-run.js'
import type { AccountStore } from './account-store.js'

/** A process that creates or renders runs. Its row is its lease: while it is alive, its runs are its own. */
export interface WorkerRecord {
  readonly id: string
  readonly host: string
  readonly pid: number
  /** When the process began, in milliseconds since the epoch: a process id alone may be used again. */
  readonly bornAtMs: number
  readonly heartbeatAtMs: number
}

export interface NewRun {
  readonly id: string
  readonly accountId: number
  /** Undefined when the key lives in memory only: such runs are free. */
  readonly keyId: number | undefined
  readonly model: string
  readonly kind: Kind
  readonly input: StoredInput
  /** In credits; charged to the account and counted against the key. */
  readonly price: number
  /** The worker that is to render it. */
  readonly owner: string
  readonly createdAtMs: number
}

/** After so many crashes of its renderer a run is given up, with this failure. */
export interface CrashLimit {
  readonly crashes: number
  readonly failure: RunFailure
}

/** The run being finished, and who finishes it: refused (false) unless it is processing and still that worker's. */
export interface ClaimedRun {
  readonly id: string
  readonly owner: string
  readonly nowMs: number
}

export interface Store extends AccountStore {
  /**
   * Enters the run, charges its price and counts it against its key, all or nothing. `may` is told where the key and
   * its account stand at that moment, and throws to refuse; a run without a stored key is not asked about.
   */
  addRun(run: NewRun, may: (standing: AccountState) => void): Promise<void>
  findRun(id: string, accountId: number): Promise<StoredRun | undefined>
  /**
   * Moves one queued run to processing and gives it to the worker: its own before orphans. Of either, first those of the
   * account with the fewest runs in processing, then of the account that was served longest ago; of an account's, first
   * the preferred among the orphans, then the oldest. An orphan is a run whose owner has no row among the workers.
   */
  claimRun(worker: string, preferred: readonly string[], nowMs: number): Promise<StoredRun | undefined>
  finishRun(held: ClaimedRun, outputs: readonly StoredOutput[]): Promise<boolean>
  /** A run that fails, here or below, gives its price back in the same step. */
  failRun(held: ClaimedRun, failure: RunFailure): Promise<boolean>
  /** Its renderer died: back to the queue, or failed when that was once too often. */
  recordCrash(held: ClaimedRun, limit: CrashLimit): Promise<boolean>
  findOutput(token: string, name: string): Promise<StoredOutput | undefined>
  /** SHA-256 of the stored images that queued and processing runs name. */
  imagesInUse(): Promise<readonly string[]>

  /** Enters the worker or renews its lease. */
  renewLease(worker: WorkerRecord): Promise<void>
  listWorkers(): Promise<readonly WorkerRecord[]>
  /**
   * Removes a worker found dead, unless it has renewed its lease since; what it was rendering goes back to the queue,
   * counted as a death. Whether it was removed.
   */
  reapWorker(worker: WorkerRecord, limit: CrashLimit, nowMs: number): Promise<boolean>
  /** The worker leaves of its own will: what it was rendering goes back to the queue, and nothing is counted. */
  releaseWorker(id: string): Promise<void>

  close(): Promise<void>
}
