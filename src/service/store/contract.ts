/**
 * The contract of a store. Each function is one statement or one atomic step, without business rules, and asynchronous,
 * so that another database can replace SQLite.
 */
import { messageOf } from '../../errors.js'
import type { Kind } from '../../protocol/models.js'
import type { JobIntent, StoredJob } from '../engines/engine.js'
import type { AccountState } from '../rules/key-checks.js'
import type { RateLimiter } from '../rules/rate.js'
import type { AccountStore } from './account-store.js'
import type { ConsoleStore, UserStore } from './console-store.js'
import type { AcceptedRun, CarriedModel, HeldRun, RunFailure, StoredOutput, StoredRun } from './run.js'
import type { SessionProof } from './sql.js'

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
 * Id of the accepted run, which may be an earlier run with the same idempotency key. Or the reason why no run was added: the
 * key belongs to another request, or it was only checked.
 */
export type AddedRun =
  | { readonly id: string }
  | { readonly refused: 'key_reused' }
  | { readonly isAcceptable: true }

export interface NewRun extends AcceptedRun {
  /** Undefined for the ephemeral key, whose runs are free, and for a run created in the console. */
  readonly keyId: number | undefined
  /** Of a user who creates the run on the console. */
  readonly by?: SessionProof | undefined
  /** The model as it is now. Undefined: the run has the model that the service has under its name. */
  readonly carried?: CarriedModel | undefined
  /** In credits. Charged to the account and counted against the key. */
  readonly price: number
  readonly idempotency?: Idempotency | undefined
  /** Whether only to check if the run would be accepted, before its images are stored. */
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
  readonly worker: string
  readonly nowMs: number
  /** Names of the models that it can render now. Runs of other models stay queued. */
  readonly models: readonly string[]
  /** Ids of the only runs that it takes. Default: all. */
  readonly only?: readonly string[] | undefined
}

/**
 * A run and the claim of a worker. A change is refused (returns false or undefined) unless the run is processing, and the
 * worker still has it by this claim.
 */
export interface ClaimedRun {
  readonly id: string
  readonly owner: string
  readonly attempt: number
  readonly nowMs: number
}

/** Number of runs that a change failed, and the credits that it refunded for them. */
export interface FailedRuns {
  readonly runs: number
  readonly refunded: number
}

/** The model that a run carries, as JSON. Undefined for a run of an earlier version. */
export interface ModelOfRun {
  readonly id: string
  readonly model: string
  readonly document?: string | undefined
}

/** A canceled run whose engine may still be working on it. */
export interface StoppingRun extends ModelOfRun {
  readonly canceledAtMs: number
  /** Id of the last worker that rendered it. */
  readonly owner: string
  /** The job of its last attempt. */
  readonly stored?: StoredJob | undefined
}

/**
 * How a canceled run has stopped. `kept`: its price is not refunded. `unknown`: its job may continue, and an operator decides.
 * `resumed`: it was too late, so it returns to the queue, and its result is fetched.
 */
export type CanceledEnd = 'refunded' | 'kept' | 'unknown' | 'resumed'

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

/** The runs of a worker, from the claim to the end. A lease lasts 15 s. */
export interface RunQueue {
  /**
   * Moves one queued run of the requested models to processing, with a lease of the worker. Of each model, accounts are
   * served in turn.
   */
  claimRun(request: ClaimRequest): Promise<HeldRun | undefined>
  /** Renews the leases of these runs, as far as the worker has them. Returns the numbers of their claims by id. */
  renewRuns(worker: string, ids: readonly string[]): Promise<ReadonlyMap<string, number>>
  /**
   * Returns the runs whose lease ran out to the queue. Each counts a crash, and fails at the limit. A run whose create has no
   * answer yet has 30 s more.
   */
  takeBack(limit: CrashLimit, nowMs: number): Promise<FailedRuns>
  /** Returns the runs of a worker that stops to the queue, except those that wait for the answer to a create. */
  releaseRuns(worker: string): Promise<void>
  /** Returns the workers that have runs. */
  findOwners(): Promise<readonly string[]>
  /**
   * Stores the intent of a create before it is sent. Returns the milliseconds of the lease that are left; undefined if these
   * are less than 10 s, if another create was sent, or if the change is refused.
   */
  saveIntent(claimed: ClaimedRun, intent: JobIntent): Promise<number | undefined>
  /**
   * Stores the job of the run, in place of an earlier one. Returns false if the change is refused. The job of the create
   * with `intent` is stored whoever has the run.
   */
  saveJob(claimed: ClaimedRun, job: StoredJob, intent?: JobIntent): Promise<boolean>
  /** A repeat with the same outputs returns true again. */
  finishRun(claimed: ClaimedRun, outputs: readonly StoredOutput[]): Promise<boolean>
  /**
   * Fails the run and refunds its price in the same step, unless its outcome is unknown. Returns undefined if the change
   * is refused.
   */
  failRun(claimed: ClaimedRun, failure: RunFailure): Promise<FailedRuns | undefined>
  /**
   * Called after a renderer crash: returns the run to the queue. At the limit, fails it and refunds it as `failRun`
   * does.
   */
  recordCrash(claimed: ClaimedRun, limit: CrashLimit): Promise<FailedRuns | undefined>
  /** Finds the canceled runs that must be stopped: the runs of this worker, and those whose lease ran out. */
  findStopping(worker: string): Promise<readonly StoppingRun[]>
  /**
   * Returns the first queued run of each model that is not in the list. `only`: ids of the only runs that count. Default: all.
   */
  findOthers(models: readonly string[], only?: readonly string[]): Promise<readonly ModelOfRun[]>
  findModelOf(id: string): Promise<ModelOfRun | undefined>
  /**
   * Records how a canceled run has stopped. Returns undefined if that is recorded already, or if the run no longer has the job
   * `stored`.
   */
  settleCanceled(
    id: string,
    end: CanceledEnd,
    nowMs: number,
    stored?: StoredJob | undefined,
  ): Promise<FailedRuns | undefined>
}

/** The files of ended runs. */
export interface FileRecords {
  /**
   * Marks runs that ended before `beforeMs` as having no files, and returns their ids, at most `MAX_EXPIRED`. Returns them
   * again until `filesRemoved`.
   */
  expireFiles(beforeMs: number): Promise<readonly string[]>
  filesRemoved(ids: readonly string[]): Promise<void>
  /** Marks the files of an ended run of the account in the same way. False if it has none. */
  removeFiles(runId: string, accountId: number, by: SessionProof): Promise<boolean>
  /** Returns the id of this database. A copy of it, restored elsewhere, has another one. */
  databaseId(): Promise<string>
}

export interface Store extends AccountStore, UserStore, ConsoleStore, FileRecords, RunQueue {
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
   * for it; the job of a canceled run is then canceled. A repeat of the same decision changes nothing.
   */
  decideUnknown(id: string, decision: UnknownDecision): Promise<DecidedRun>
  findOutput(token: string, name: string): Promise<StoredOutput | undefined>
  /** Returns the number of queued runs of each kind. Called often, so it must be fast for a queue of any length. */
  queueLengths(): Promise<Readonly<Record<Kind, number>>>
  /** Writes to the database without changing anything. Rejects if a change would fail. */
  checkWritable(): Promise<void>
  close(): Promise<void>
}

/** The store as a running service uses it. */
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
