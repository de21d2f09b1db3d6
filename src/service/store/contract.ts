/**
 * The contract of a store. Each function is one statement or one atomic step, without business rules, and asynchronous,
 * so that another database can replace SQLite.
 */
import { messageOf } from '../../errors.js'
import type { Kind } from '../../protocol/models.js'
import type { JobHandle, StoredJob } from '../engines/engine.js'
import type { RateLimiter } from '../rate/rate-limiter.js'
import type { AccountState } from '../rules/key-checks.js'
import type { AcceptedRun, ImageBytes, RunFailure, StoredOutput, StoredRun } from '../stored-run.js'
import type { AccountStore } from './account-store.js'
import type { ConsoleStore, UserStore } from './console-store.js'
import type { SessionProof } from './sql.js'

export interface Heartbeat {
  /** Id of the worker. */
  readonly id: string
  /** Time of its last heartbeat, by the database's clock. Do not compare it with another clock. */
  readonly heartbeatAtMs: number
}

/**
 * A process that renders runs. Its row is its lease: no other worker takes its claimed runs until the lease expires.
 */
export interface WorkerRecord extends Heartbeat {
  /** Whether its process is known to have ended. If false, other workers take its runs only after the lease expires. */
  readonly hasEnded: boolean
  /** Whether its connection to the database was lost. Its process has also ended, or it will reconnect. */
  readonly isDisconnected?: boolean
}

/** Lets a client repeat a create without paying twice. */
export interface Idempotency {
  /** Chosen by the client, and unique per account. */
  readonly key: string
  /** SHA-256 of model and input. */
  readonly request: string
  /** A run that was created after this time with the same key is the same create. */
  readonly sinceMs: number
}

/**
 * Id of the accepted run, which may be an earlier run with the same idempotency key. Or the reason why no run was
 * added: the key belongs to another request, or a file was removed and must be stored again.
 */
export type AddedRun = { readonly id: string } | { readonly refused: 'key_reused' | 'file_removed' }

export interface NewRun extends AcceptedRun {
  /** Undefined for the ephemeral key, whose runs are free, and for a run created in the console. */
  readonly keyId: number | undefined
  /** Of a user who creates the run on the console. */
  readonly by?: SessionProof | undefined
  /** In credits. Charged to the account and counted against the key. */
  readonly price: number
  /**
   * Files to keep until the run has ended. The caller has stored the inputs. The file of an output may be missing.
   * Default: none.
   */
  readonly files?: readonly FileName[] | undefined
  readonly idempotency?: Idempotency | undefined
  /**
   * Whether only to check if the run would be accepted, before its images are stored: it is not added, and the result is
   * an earlier run or `file_removed`.
   */
  readonly onlyCheck?: boolean | undefined
}

/** Number of renderer crashes after which a run fails, and the failure to record. */
export interface CrashLimit {
  readonly crashes: number
  readonly failure: RunFailure
}

/** The runs that a worker takes: all, or only runs that were created through it. */
export type Claims = 'all' | 'requested'

/** What a worker asks for when it has a free slot. */
export interface ClaimRequest {
  /** The worker, which must have a lease. */
  readonly worker: string
  readonly nowMs: number
  /** Names of the models that it can render now. Runs of other models stay queued. */
  readonly models: readonly string[]
  /**
   * Models with separate slots, which servers render. Runs in processing of such a model count only when runs of
   * this model are compared, so that a server that is slow or down keeps no account from other models. Default: none.
   */
  readonly separate?: readonly string[] | undefined
  /** Ids of the only runs that it takes. Default: all. */
  readonly only?: readonly string[] | undefined
}

/**
 * A run and the worker that claimed it. A change is refused (returns false or undefined) unless the run is processing
 * and this worker still owns it.
 */
export interface ClaimedRun {
  readonly id: string
  readonly owner: string
  readonly nowMs: number
  /** Start of the attempt. A repeated `recordCrash` does not count against the next attempt of this worker. */
  readonly startedAtMs?: number | undefined
}

/** Number of runs that a change failed, and the credits that it refunded for them. */
export interface FailedRuns {
  readonly runs: number
  readonly refunded: number
}

/** A canceled run whose engine may still be working on it. */
export interface StoppingRun {
  readonly id: string
  readonly model: string
  /** Id of the last worker that rendered it. */
  readonly owner: string
  /** The job of its last attempt. */
  readonly stored?: StoredJob | undefined
}

export interface CanceledRun {
  readonly accountId: number
  /** Whether this call canceled the run. False for a run that had ended. */
  readonly isCanceled: boolean
  readonly refunded: number
}

export interface UnknownDecision {
  /** The job to follow. Undefined: the run is refunded. */
  readonly adopt?: StoredJob | undefined
  readonly nowMs: number
}

/**
 * `done`: also by an earlier call. `missing`: the run does not exist. `other`: its outcome is not unknown, or was decided.
 * `taken`: another run has the job.
 */
export type DecidedRun = 'done' | 'missing' | 'other' | 'taken'

/** The runs of a worker, from the claim to the end. */
export interface RunQueue {
  /**
   * Moves one queued run of the requested models to processing, owned by the worker. Order: the account with the fewest
   * runs in processing, then the account served longest ago; within an account, the oldest run. See `separate`.
   */
  claimRun(request: ClaimRequest): Promise<StoredRun | undefined>
  /** Records outputs as needed by the run, before they are stored. Returns false and records nothing if the change is refused. */
  addOutputFiles(claimed: ClaimedRun, outputs: readonly StoredOutput[]): Promise<boolean>
  /** Stores the job of the run, in place of an earlier one. Returns false if the change is refused. */
  saveJob(claimed: ClaimedRun, job: StoredJob): Promise<boolean>
  /**
   * Stores a job that was found in a list of its server, as `saveJob` does. `taken`: it is the job of another run, or
   * another run whose create had no answer may have it.
   */
  adoptJob(claimed: ClaimedRun, handle: JobHandle): Promise<boolean | 'taken'>
  /** A repeat with the same outputs returns true again. */
  finishRun(claimed: ClaimedRun, outputs: readonly StoredOutput[]): Promise<boolean>
  /**
   * Fails the run and refunds its price in the same step, unless its outcome is unknown. Returns undefined if the change
   * is refused.
   */
  failRun(claimed: ClaimedRun, failure: RunFailure): Promise<FailedRuns | undefined>
  /**
   * Returns the runs in processing that this worker owns and does not hold to the queue: the response to their claim was
   * lost. No claim of this worker may be in progress.
   */
  returnRuns(worker: string, held: readonly string[]): Promise<void>
  /**
   * Called after a renderer crash: returns the run to the queue. At the limit, fails it and refunds it as `failRun`
   * does.
   */
  recordCrash(claimed: ClaimedRun, limit: CrashLimit): Promise<FailedRuns | undefined>
  /**
   * Finds the canceled runs of these models that must be stopped: the runs of this worker, and of workers that have
   * ended. Of other models, those that were canceled before `abandonedMs` (default: none).
   */
  findStopping(
    worker: string,
    models: readonly string[],
    abandonedMs?: number,
  ): Promise<readonly StoppingRun[]>
  /**
   * Records that a canceled run has stopped, and whether it is refunded. `undefined`: an operator decides. Returns
   * undefined if that is recorded already, or if the run no longer has the job `stored`.
   */
  settleCanceled(
    id: string,
    isRefunded: boolean | undefined,
    nowMs: number,
    stored?: StoredJob | undefined,
  ): Promise<FailedRuns | undefined>
  /**
   * Calls `listener` when another process has queued a run, or may have. The call can be late or missing, so poll the
   * queue too. Returns a function that removes the listener.
   */
  onQueued?(listener: () => void): () => void
}

export interface WorkerStore {
  /** Adds this process as a worker, or renews its lease. */
  renewLease(id: string): Promise<void>
  /**
   * Renews the lease of a worker. Returns false if it has no lease: it was reaped, and other workers can own its runs.
   */
  extendLease(id: string): Promise<boolean>
  listWorkers(): Promise<readonly WorkerRecord[]>
  /**
   * Removes a worker whose lease has expired, unless the lease was renewed after `heartbeatAtMs`. Its runs in
   * processing count a crash each and return to the queue, or fail at the limit. Returns undefined if the worker was
   * not removed.
   */
  reapWorker(worker: Heartbeat, limit: CrashLimit, nowMs: number): Promise<FailedRuns | undefined>
  /** Removes a worker that shuts down. Its runs in processing return to the queue, and no crash is counted. */
  releaseWorker(id: string): Promise<void>
}

export interface Store extends AccountStore, UserStore, ConsoleStore, FileRecords, RunQueue, WorkerStore {
  /**
   * Adds the run, charges its price and counts it against its key, atomically. `check` receives the current state of
   * key and account, and throws to refuse the run. It is not called for a free run without a stored key, nor for a
   * repeated create.
   */
  addRun(run: NewRun, check: (account: AccountState) => void): Promise<AddedRun>
  /** Returns the id of the run that this same request has created. */
  findCreated(accountId: number, idempotency: Idempotency): Promise<string | undefined>
  findRun(id: string, accountId: number): Promise<StoredRun | undefined>
  /**
   * Cancels a run, and refunds it if it is queued. A run in processing is canceled at once, and then stopped and settled by
   * a worker. A run that has ended stays as it is. Returns undefined if the account, or any without `accountId`, has no
   * such run.
   */
  cancelRun(
    id: string,
    nowMs: number,
    accountId?: number,
    by?: SessionProof,
  ): Promise<CanceledRun | undefined>
  /**
   * Decides on a run whose outcome is unknown: refunds it, or returns it to the queue with the job that its provider has
   * for it, unless it was canceled. A repeat of the same decision changes nothing.
   */
  decideUnknown(id: string, decision: UnknownDecision): Promise<DecidedRun>
  findOutput(token: string, name: string): Promise<StoredOutput | undefined>
  /** Returns the number of queued runs of each kind. Called often, so it must be fast for a queue of any length. */
  queueLengths(): Promise<Readonly<Record<Kind, number>>>
  /** Writes to the database without changing anything. Rejects if a change would fail. */
  checkWritable(): Promise<void>
  close(): Promise<void>
}

/** A file of the service, with the key under which it is stored. */
export interface FileName {
  readonly kind: 'input' | 'output'
  readonly key: string
  /** An image that the caller has stored under a new key. The run records it. */
  readonly image?: ImageBytes | undefined
}

/** Maximum number of records that one call removes. */
export const MAX_REMOVED = 500

/**
 * Records which files are in the storage and which unfinished runs need them. A file is stored under a new key, then recorded
 * with its run. Its record is removed before the file. So a file without a record, which no unfinished run needs, was left by
 * a worker, a create or a sweep that ended early, and no run will use it.
 */
export interface FileRecords {
  /** Returns the key of a recorded image. */
  findImage(sha256: string): Promise<string | undefined>
  /**
   * Removes the records of files that were last used before `beforeMs` and that no unfinished run needs. Returns their keys.
   * The caller removes the files, and repeats the call while it returns `MAX_REMOVED`.
   */
  removeOldFiles(kind: FileName['kind'], beforeMs: number): Promise<readonly string[]>
  /**
   * Removes the records of the outputs of a run, except those that an unfinished run needs, and returns their keys. The caller
   * removes the files.
   */
  removeOutputs(runId: string, accountId: number, by: SessionProof): Promise<readonly string[]>
  /** Returns the keys that have no record and that no unfinished run needs. */
  findUnknownFiles(kind: FileName['kind'], keys: readonly string[]): Promise<readonly string[]>
  /** Returns the random id of this database. A backup has a new one. */
  databaseId(): Promise<string>
}

/** The store as a running service uses it. Every argument and result can be sent to a worker thread. */
export interface ServiceStore extends Omit<Store, 'addRun' | 'addCredits'> {
  /**
   * Throws `Refusal`: 401 for the key, 403 for the account or the spend limit, 429 for the quota, 402 for the balance.
   */
  addRun(run: NewRun): Promise<AddedRun>
}

/** A store that closes with its service. */
export interface RunningStore extends ServiceStore {
  /** Rate limiter that all nodes on the database share. Undefined if the database has none. */
  readonly rateLimiter?: RateLimiter | undefined
  /** Called when the service closes: a change that still waits for the database then fails in time for the close. */
  stopWaiting(): void
}

/** The database cannot be reached or cannot accept a change now. A retry may succeed later. */
export class DatabaseUnavailable extends Error {
  override readonly name = 'DatabaseUnavailable'
  readonly code = 'DATABASE_UNAVAILABLE'
  /** Whether the connection was lost during the commit, so that the change may have been made. */
  readonly isUnknown: boolean

  constructor(cause: unknown, { isUnknown = false } = {}) {
    const reason = messageOf(cause)
    super(isUnknown ? `${reason}; the change may have been made` : reason, { cause })
    this.isUnknown = isUnknown
  }
}
