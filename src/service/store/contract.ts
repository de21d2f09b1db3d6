/**
 * The contract of a store. Each function is one statement or one atomic step, without business rules, so that another
 * database can replace SQLite. For the same reason the functions are asynchronous.
 */

import { randomBytes } from 'node:crypto'
import { messageOf } from '../../errors.js'
import type { Kind } from '../../protocol/models.js'
import type { RateLimiter } from '../rate/rate-limiter.js'
import { type AccountState, checkBudget } from '../rules/key-checks.js'
import type { RunFailure, StoredImage, StoredInput, StoredOutput, StoredRun } from '../stored-run.js'
import type { AccountStore } from './account-store.js'
import type { ConsoleStore, UserStore } from './console-store.js'

/**
 * A process that renders runs. Its row is its lease: until it expires, no other worker takes the runs that it claimed.
 */
export interface WorkerRecord {
  readonly id: string
  /** By the database's clock. It changes with each heartbeat, and is not compared with another clock. */
  readonly heartbeatAtMs: number
  /** Whether its process is known to have ended. If not, the lease must expire. */
  readonly hasEnded: boolean
  /** Whether its connection to the database has ended. Its process has then ended too, or it will reconnect. */
  readonly isDisconnected?: boolean
}

/** Lets a client repeat a create and pay once. */
export interface Idempotency {
  /** Chosen by the client; unique per account. */
  readonly key: string
  /** SHA-256 of model and input. */
  readonly request: string
  /** The key is kept until this time. */
  readonly expiresAtMs: number
}

/**
 * The id of the accepted run; with an idempotency key, it may be an earlier run. Or the reason why nothing was added:
 * the key belongs to another request, or a file was removed in the meantime and must be stored again.
 */
export type AddedRun = { readonly id: string } | { readonly refused: 'key_reused' | 'file_removed' }

export interface NewRun {
  readonly id: string
  readonly accountId: number
  /** Undefined for the ephemeral key, whose runs are free, and for a run that was created in the console. */
  readonly keyId: number | undefined
  readonly model: string
  readonly kind: Kind
  readonly input: StoredInput
  /** In credits; charged to the account and counted against the key. */
  readonly price: number
  readonly createdAtMs: number
  /**
   * Files that are not removed until the run has ended. The caller has stored the inputs; an output may be missing.
   * Default: none.
   */
  readonly files?: readonly FileName[] | undefined
  readonly idempotency?: Idempotency | undefined
}

/** After this number of renderer crashes a run fails, with this failure. */
export interface CrashLimit {
  readonly crashes: number
  readonly failure: RunFailure
  /** False: the run is not refunded. Default: true. */
  readonly refunds?: boolean
}

/** The runs that a worker takes: all, or only those created through it. */
export type Claims = 'all' | 'requested'

/**
 * A run and the worker that claimed it. A change is refused (false) unless the run is processing and this worker still
 * owns it.
 */
export interface ClaimedRun {
  readonly id: string
  readonly owner: string
  readonly nowMs: number
}

/** Number of runs that failed in a change, and the credits that were refunded for them. */
export interface FailedRuns {
  readonly runs: number
  readonly refunded: number
}

export interface Store extends AccountStore, UserStore, ConsoleStore, FileRecords {
  /**
   * Adds the run, charges its price and counts it against its key, all or nothing. `check` gets the state of key and
   * account at that moment, and throws to refuse. It is not called for a free run without a stored key, nor for a
   * repeated create.
   */
  addRun(run: NewRun, check: (account: AccountState) => void): Promise<AddedRun>
  findRun(id: string, accountId: number): Promise<StoredRun | undefined>
  /**
   * Moves one queued run to processing, owned by the worker, which must have a lease. Order: the account with the
   * fewest runs in processing, then the account served longest ago; within an account preferred runs, then the oldest.
   * With `requested`, runs that are not preferred stay queued. Runs of skipped accounts stay queued too.
   */
  claimRun(
    worker: string,
    preferred: readonly string[],
    nowMs: number,
    claims?: Claims,
    skippedAccounts?: readonly number[],
  ): Promise<StoredRun | undefined>
  /** Records outputs before they are stored. Returns false and records nothing if the change is refused. */
  addOutputFiles(claimed: ClaimedRun, outputs: readonly StoredOutput[]): Promise<boolean>
  finishRun(claimed: ClaimedRun, outputs: readonly StoredOutput[]): Promise<boolean>
  /**
   * Here and below, the price of a run that fails is refunded in the same step, unless `refunds` is false. Undefined
   * when the change is refused.
   */
  failRun(
    claimed: ClaimedRun,
    failure: RunFailure,
    options?: { readonly refunds: boolean },
  ): Promise<FailedRuns | undefined>
  /** Called after a renderer crash: returns the run to the queue, or fails it at the limit. */
  recordCrash(claimed: ClaimedRun, limit: CrashLimit): Promise<FailedRuns | undefined>
  findOutput(token: string, name: string): Promise<StoredOutput | undefined>
  /** The number of queued runs of each kind. Read often, so it must be fast for any length. */
  queueLengths(): Promise<Readonly<Record<Kind, number>>>

  /** Adds this process as a worker, or renews its lease. */
  renewLease(id: string): Promise<void>
  /** Renews the lease of a worker; false when it has none: it was reaped, and its runs belong to others. */
  extendLease(id: string): Promise<boolean>
  listWorkers(): Promise<readonly WorkerRecord[]>
  /**
   * Removes a worker whose lease has expired, unless it has been renewed since. Its renders return to the queue, and
   * count as crashes. Undefined when it was not removed.
   */
  reapWorker(
    worker: Pick<WorkerRecord, 'id' | 'heartbeatAtMs'>,
    limit: CrashLimit,
    nowMs: number,
  ): Promise<FailedRuns | undefined>
  /** Removes a worker that shuts down: its renders return to the queue, and no crash is counted. */
  releaseWorker(id: string, nowMs: number): Promise<void>

  /**
   * `listener` is called when another process has queued a run, or may have. It may be called late or not at all, so
   * poll the queue as well. Returns a function that removes the listener.
   */
  onQueued?(listener: () => void): () => void

  /** Tries to write to the database, without changing anything. Rejects if a change would fail. */
  checkWritable(): Promise<void>
  close(): Promise<void>
}

/**
 * Records of the files in the storage, and of which unfinished runs need them. A file is recorded before its bytes are
 * stored, and marked before they are removed: files left by an ended process are known, and no create uses a file that
 * is being removed.
 *
 *   writing ──▶ stored ──▶ removing ──▶ removed ──▶ forgotten
 *      └──────────────────────▲
 */

/** A file of the service by the key under which it is stored. */
export interface FileName {
  readonly kind: 'input' | 'output'
  readonly key: string
}

/**
 * The age of a younger image is not renewed, so that creates with the same image write nothing. The minimum retention
 * is one minute.
 */
export const RENEWED_AFTER_MS = 30_000

/** Maximum number of files that one call marks. */
export const MAX_MARKED = 500

export interface FileRecords {
  /**
   * Records an image, or renews its age if it is over `RENEWED_AFTER_MS`. Returns the key under which the caller stores
   * its bytes, also if another process has recorded it. The image becomes `stored` with the first run that is added
   * with it.
   */
  holdImage(image: Pick<StoredImage, 'sha256' | 'bytes'>, nowMs: number): Promise<string>
  /** The key of an image that is not removed; undefined if none is recorded. */
  findImage(sha256: string): Promise<string | undefined>

  /**
   * Marks stored files that were used before `beforeMs` and that no unfinished run needs. Returns their number; the
   * caller repeats the call while it is `MAX_MARKED`.
   */
  markOldFiles(kind: FileName['kind'], beforeMs: number, nowMs: number): Promise<number>
  /**
   * Marks files that were recorded but never stored: outputs of runs that their worker no longer renders, and images
   * from before `beforeMs`, whose creates were refused or stopped.
   */
  markOrphans(beforeMs: number, nowMs: number): Promise<number>
  /** Records, as marked, files in the storage that have no record, unless an unfinished run needs them. */
  markUnknownFiles(kind: FileName['kind'], keys: readonly string[], nowMs: number): Promise<number>
  /** Marked files in the order of their names, after `last`. */
  listMarkedFiles(limit: number, last: FileName | undefined): Promise<readonly FileName[]>
  /** Records that a file was removed from the storage. False if another process has already recorded it. */
  recordRemoved(file: FileName, nowMs: number): Promise<boolean>
  /** Frees the keys of files that were removed before `beforeMs`. */
  forgetRemoved(beforeMs: number): Promise<void>
}

/**
 * A spare key for an image whose usual key (its SHA-256) belongs to a file that is being removed or was removed
 * recently: a slow sweep of another node must not remove the new file.
 */
export const spareKeyOf = (sha256: string): string => `${sha256}-${randomBytes(8).toString('hex')}`

/** The store as a running service uses it. Every argument and result can be sent to a thread. */

export interface ServiceStore extends Omit<Store, 'addRun' | 'addCredits'> {
  /** Throws `Refusal`: 401 for the key, 403 for account and spend limit, 429 for the quota, 402 for the balance. */
  addRun(run: NewRun): Promise<AddedRun>
}

/** A store that is closed with its service. */
export interface RunningStore extends ServiceStore {
  /** Shared by all nodes on the database. Undefined if the database has no rate limiter. */
  readonly rateLimiter?: RateLimiter | undefined
  /** After this, a change that waits for the database gives up in time for the service to close. */
  stopWaiting(): void
}

export const withBudgetCheck = (store: Store): ServiceStore => ({
  ...store,
  addRun: (run) => store.addRun(run, (account) => checkBudget(account, run.price, run.createdAtMs)),
})

/** The database cannot be reached, or cannot take a change at the moment: a retry may succeed later. */
export class DatabaseUnavailable extends Error {
  override readonly name = 'DatabaseUnavailable'
  readonly code = 'DATABASE_UNAVAILABLE'
  /** The connection was lost while the change was committed, so it may have been made. */
  readonly isUnknown: boolean

  constructor(cause: unknown, { isUnknown = false } = {}) {
    const reason = messageOf(cause)
    super(isUnknown ? `${reason}; the change may have been made` : reason, { cause })
    this.isUnknown = isUnknown
  }
}
