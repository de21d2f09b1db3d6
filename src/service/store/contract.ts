/**
 * The store's contract. Every function is one statement or one atomic step, without further rules, so that another
 * database can replace SQLite; for that the functions are asynchronous.
 */
import type { Kind } from '../../protocol/models.js'
import type { AccountState } from '../rules/budget.js'
import type { RunFailure, StoredInput, StoredOutput, StoredRun } from '../stored-run.js'
import type { AccountStore } from './account-store.js'

/** A process that creates or renders runs. Its row is its lease: until it expires, nobody else takes its runs. */
export interface WorkerRecord {
  readonly id: string
  readonly host: string
  readonly pid: number
  /** Start of the process, in milliseconds since the epoch: a process id alone may be reused. */
  readonly bornAtMs: number
  readonly heartbeatAtMs: number
}

export interface NewRun {
  readonly id: string
  readonly accountId: number
  /** Undefined for the ephemeral key, whose runs are free. */
  readonly keyId: number | undefined
  readonly model: string
  readonly kind: Kind
  readonly input: StoredInput
  /** In credits; charged to the account and counted against the key. */
  readonly price: number
  /** The worker that renders it first of all. */
  readonly owner: string
  readonly createdAtMs: number
}

/** After this number of renderer crashes a run fails, with this failure. */
export interface CrashLimit {
  readonly crashes: number
  readonly failure: RunFailure
}

/** Which runs a worker takes: all that nobody else has, or only its own and those that somebody waits for. */
export type Claims = 'all' | 'requested'

/** A run and the worker that claimed it. A change is refused (false) unless the run is processing and still this worker's. */
export interface ClaimedRun {
  readonly id: string
  readonly owner: string
  readonly nowMs: number
}

/** What a change of runs ended: how many failed, and the credits that were refunded for them. */
export interface FailedRuns {
  readonly runs: number
  readonly refunded: number
}

export interface Store extends AccountStore {
  /**
   * Adds the run, charges its price and counts it against its key, all or nothing. `check` gets the state of key and
   * account at that moment, and throws to refuse; it is not called for a run without a stored key.
   */
  addRun(run: NewRun, check: (account: AccountState) => void): Promise<void>
  findRun(id: string, accountId: number): Promise<StoredRun | undefined>
  /**
   * Moves one queued run to processing, owned by the worker. Order: the worker's own runs, then orphans (runs whose owner
   * is not among the workers); within these the account with the fewest runs in processing, then the account served
   * longest ago; within an account preferred orphans, then the oldest run. With `requested`, orphans that are not
   * preferred stay queued.
   */
  claimRun(
    worker: string,
    preferred: readonly string[],
    nowMs: number,
    claims?: Claims,
  ): Promise<StoredRun | undefined>
  finishRun(held: ClaimedRun, outputs: readonly StoredOutput[]): Promise<boolean>
  /** Here and below, the price of a run that fails is refunded in the same step. Undefined when the change is refused. */
  failRun(held: ClaimedRun, failure: RunFailure): Promise<FailedRuns | undefined>
  /** After a crash of its renderer: back to the queue, or failed at the limit. */
  recordCrash(held: ClaimedRun, limit: CrashLimit): Promise<FailedRuns | undefined>
  findOutput(token: string, name: string): Promise<StoredOutput | undefined>
  /** SHA-256 of the stored images that queued and processing runs use. */
  imagesInUse(): Promise<readonly string[]>
  /** The number of queued runs of each kind. Read often, so it must be fast for any length. */
  queueLengths(): Promise<Readonly<Record<Kind, number>>>

  /** Adds the worker, or renews its lease. */
  renewLease(worker: WorkerRecord): Promise<void>
  listWorkers(): Promise<readonly WorkerRecord[]>
  /**
   * Removes a worker whose lease has expired, unless it has been renewed since; its renders return to the queue, counted
   * as crashes. Undefined when it was not removed.
   */
  reapWorker(worker: WorkerRecord, limit: CrashLimit, nowMs: number): Promise<FailedRuns | undefined>
  /** Removes a worker that shuts down: its renders return to the queue, and no crash is counted. */
  releaseWorker(id: string): Promise<void>

  close(): Promise<void>
}
