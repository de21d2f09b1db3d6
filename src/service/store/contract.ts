/**
 * The store's contract. Every function is one statement or one atomic step, without further rules, so that another
 * database can replace SQLite; for that the functions are asynchronous.
 */
import type { Kind } from '../../protocol/models.js'
import type { AccountState } from '../rules/budget.js'
import type { RunFailure, StoredInput, StoredOutput, StoredRun } from '../stored-run.js'
import type { AccountStore } from './account-store.js'
import type { ConsoleStore } from './console-store.js'
import type { FileName, FileRecords } from './file-records.js'
import type { UserStore } from './user-store.js'

/** A process that renders runs. Its row is its lease: until it expires, nobody else takes the runs that it claimed. */
export interface WorkerRecord {
  readonly id: string
  /** By the database's clock. It changes with each heartbeat, and is not compared with another clock. */
  readonly heartbeatAtMs: number
  /** Whether its process is known to have ended. If not, the lease runs to its end. */
  readonly hasEnded: boolean
  /** Whether its connection to the database has ended: its process too, or it will connect again. */
  readonly isDisconnected?: boolean
}

/** By which a client sends a create again, and pays once. */
export interface Idempotency {
  /** Of the client; each account has its own. */
  readonly key: string
  /** SHA-256 of model and input. */
  readonly request: string
  /** Until then the key is kept. */
  readonly expiresAtMs: number
}

/**
 * The id of the accepted run: with an idempotency key it may be one that was accepted before. Or why nothing was added: the key
 * belongs to another request, or a file was removed meanwhile and must be stored again.
 */
export type AddedRun = { readonly id: string } | { readonly refused: 'key_reused' | 'file_removed' }

export interface NewRun {
  readonly id: string
  readonly accountId: number
  /** Undefined for the ephemeral key, whose runs are free, and for a run that was created on the page. */
  readonly keyId: number | undefined
  readonly model: string
  readonly kind: Kind
  readonly input: StoredInput
  /** In credits; charged to the account and counted against the key. */
  readonly price: number
  readonly createdAtMs: number
  /** Not removed until the run has ended. Of an input the caller has stored the bytes; an output may have been removed. By default none. */
  readonly files?: readonly FileName[] | undefined
  readonly idempotency?: Idempotency | undefined
}

/** After this number of renderer crashes a run fails, with this failure. */
export interface CrashLimit {
  readonly crashes: number
  readonly failure: RunFailure
  /** False: it is not refunded. */
  readonly refunds?: boolean
}

/** Which runs a worker takes: all, or only those that it was asked for. */
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

export interface Store extends AccountStore, UserStore, ConsoleStore, FileRecords {
  /**
   * Adds the run, charges its price and counts it against its key, all or nothing. `check` gets the state of key and
   * account at that moment, and throws to refuse; it is not called for a free run without a stored key, nor for a repeated create.
   */
  addRun(run: NewRun, check: (account: AccountState) => void): Promise<AddedRun>
  findRun(id: string, accountId: number): Promise<StoredRun | undefined>
  /**
   * Moves one queued run to processing, owned by the worker, which must have a lease. Order: the account with the fewest
   * runs in processing, then the account served longest ago; within an account preferred runs, then the oldest. With
   * `requested`, runs that are not preferred stay queued; so do those of the skipped accounts.
   */
  claimRun(
    worker: string,
    preferred: readonly string[],
    nowMs: number,
    claims?: Claims,
    skippedAccounts?: readonly number[],
  ): Promise<StoredRun | undefined>
  /** Enters outputs before they are stored. False, and nothing is entered, when the change is refused. */
  addOutputFiles(held: ClaimedRun, outputs: readonly StoredOutput[]): Promise<boolean>
  finishRun(held: ClaimedRun, outputs: readonly StoredOutput[]): Promise<boolean>
  /**
   * Here and below, the price of a run that fails is refunded in the same step, unless `refunds` is false. Undefined when the change
   * is refused.
   */
  failRun(
    held: ClaimedRun,
    failure: RunFailure,
    options?: { readonly refunds: boolean },
  ): Promise<FailedRuns | undefined>
  /** After a crash of its renderer: back to the queue, or failed at the limit. */
  recordCrash(held: ClaimedRun, limit: CrashLimit): Promise<FailedRuns | undefined>
  findOutput(token: string, name: string): Promise<StoredOutput | undefined>
  /** The number of queued runs of each kind. Read often, so it must be fast for any length. */
  queueLengths(): Promise<Readonly<Record<Kind, number>>>

  /** Adds this process as a worker, or renews its lease. */
  renewLease(id: string): Promise<void>
  /** Renews the lease of a worker; false when it has none any more: it was reaped, and its runs belong to others. */
  extendLease(id: string): Promise<boolean>
  listWorkers(): Promise<readonly WorkerRecord[]>
  /**
   * Removes a worker whose lease has expired, unless it has been renewed since; its renders return to the queue, counted
   * as crashes. Undefined when it was not removed.
   */
  reapWorker(
    worker: Pick<WorkerRecord, 'id' | 'heartbeatAtMs'>,
    limit: CrashLimit,
    nowMs: number,
  ): Promise<FailedRuns | undefined>
  /** Removes a worker that shuts down: its renders return to the queue, and no crash is counted. */
  releaseWorker(id: string, nowMs: number): Promise<void>

  /**
   * `listener` is called when another process has queued a run, or may have. It may be called too late or not at all, so the
   * queue is looked at as well. Ends with the function that is returned.
   */
  onQueued?(listener: () => void): () => void

  /** Writes to the database, and changes nothing. Rejects when a change would. */
  checkWritable(): Promise<void>
  close(): Promise<void>
}
