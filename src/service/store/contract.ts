/** The records of runs and the queue that the store takes and returns. */
import type { StoredJob } from '../engines/engine.js'
import type { AcceptedRun, CarriedModel, RunFailure } from './run.js'
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
