/** A run as the local service stores it, what the store takes and returns of it, and the run object of responses. */
import { withoutData } from '../../protocol/identity.js'
import type { Kind, ModelInput } from '../../protocol/models.js'
import { type LocalStatus, OUTCOME_UNKNOWN } from '../../protocol/run-state.js'
import { asSentence, percentDecoded } from '../../protocol/text.js'
import { isoOrNull } from '../../protocol/units.js'
import type { StoredJob } from '../engines/engine.js'
import type { SessionProof } from './sql.js'

interface OutputName {
  /** Secret part of the output's URL, shared by all outputs of a run: its id, a dot and random characters. */
  readonly token: string
  readonly name: string
}

export interface StoredOutput extends OutputName {
  readonly contentType: string
  readonly bytes: number
  readonly sha256: string
}

/** An output or an image, as the database describes it. */
export interface StoredFile {
  /** Key in the file store. */
  readonly key: string
  /** Name for messages. */
  readonly name: string
  readonly contentType: string
  readonly bytes: number
  readonly sha256: string
}

export interface RunFailure {
  readonly code: string
  readonly message: string
}

/**
 * Whether the price of a run that ended without a result was refunded. The last sentence of its error, so that the API, the
 * console and the command line say the same.
 */
const REFUNDS = {
  refunded: ' Its price was refunded.',
  kept: ' Its price was not refunded, because the provider may have charged for it.',
  unknown: ' Its price was not refunded, because its job may continue at the provider.',
} as const

/** Returns the failure with this sentence, in place of an earlier one. */
export function withRefund({ code, message }: RunFailure, refund: keyof typeof REFUNDS): RunFailure {
  const text = message.replace(/ Its price was (not )?refunded\b[^.]*\.$/, '').trimEnd()
  return { code, message: `${asSentence(text)}${REFUNDS[refund]}` }
}

const FREE_ENDS = {
  refunded: '',
  kept: ' Its provider may have charged for it.',
  unknown: ' Its job may continue at the provider, and cost money.',
} as const

/** The error of a canceled run. `undecided`: it was being rendered, and has not stopped yet. */
export function canceled(end: keyof typeof REFUNDS | 'undecided', price = 0): RunFailure {
  if (end === 'undecided')
    return { code: 'canceling', message: 'The run was canceled. The service is stopping it.' }
  const code = end === 'unknown' ? OUTCOME_UNKNOWN : 'canceled'
  return { code, message: `The run was canceled.${(price > 0 ? REFUNDS : FREE_ENDS)[end]}` }
}

/** The document of a model and its engine as JSON, which each run of the model carries. The paths in it are absolute. */
export interface CarriedModel {
  /** SHA-256. */
  readonly hash: string
  readonly json: string
}

export interface AcceptedRun {
  readonly id: string
  readonly accountId: number
  readonly model: string
  readonly kind: Kind
  /** As sent, with a `SentImage` for each data: URL in `image_urls`. */
  readonly input: ModelInput
  /** Milliseconds since the epoch, like all times. */
  readonly createdAtMs: number
}

export interface StoredRun extends AcceptedRun {
  readonly status: LocalStatus
  readonly outputs: readonly StoredOutput[]
  readonly failure: RunFailure | undefined
  readonly startedAtMs: number | undefined
  readonly finishedAtMs: number | undefined
}

/** A run that a worker has claimed. */
export interface HeldRun extends StoredRun {
  /** The number of the claim. */
  readonly attempt: number
  /** The model that it carries, as JSON. Undefined for a run of an earlier version. */
  readonly document?: string | undefined
  /** The job at the server of its model, as it was stored last. */
  job?: StoredJob | undefined
}

/** Lets a client repeat a create without paying twice. */
export interface Idempotency {
  /** Chosen by the client, and unique per account. */
  readonly key: string
  /** Hash of the parsed body. */
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
 * `taken`: another run has the job. `no job`: the server of the run has none.
 */
export type DecidedRun = 'done' | 'missing' | 'other' | 'taken' | 'no job'

export const OUTPUTS_PATH = '/outputs'

/**
 * Key of an output in the file store, below the id of its run, with which the token begins: `run_x/secret/a.png` for the token
 * `run_x.secret`.
 */
export const outputKey = ({ token, name }: OutputName): string => `${token.replace('.', '/')}/${name}`

/** Key of an image that was sent with a run. */
export const inputKey = (runId: string, sha256: string): string => `${runId}/inputs/${sha256}`

export const outputUrl = (baseUrl: string, { token, name }: OutputName): string =>
  `${baseUrl}${OUTPUTS_PATH}/${token}/${encodeURIComponent(name)}`

/**
 * Returns the output that a URL identifies; undefined for other URLs. Compares only the path, since the service may
 * have sent the URL with another host or port.
 */
export function outputOfUrl(url: string): OutputName | undefined {
  if (!URL.canParse(url)) return undefined
  const [name = '', token = '', folder] = new URL(url).pathname.split('/').reverse()
  return `/${folder}` === OUTPUTS_PATH ? { token, name: percentDecoded(name) } : undefined
}

/** Progress of a run, known only to the process that renders it. */
export interface RenderState {
  /** From 0 to 1; undefined if the engine reports none. */
  readonly progress?: number | undefined
  /** Number of jobs before it in the queue of the model's server; undefined if the server does not report it. */
  readonly queue_position?: number | undefined
}

/**
 * The run object of the API (docs/service.md). All keys are present, and unknown values are null, except the keys of
 * `state`, which only a run that is being rendered can have.
 */
export const runObject = (run: StoredRun, baseUrl: string, state?: RenderState) => ({
  id: run.id,
  model: run.model,
  status: run.status,
  // The engine gets data: URLs within objects as they were sent.
  input: withoutData(run.input),
  output:
    run.status === 'succeeded' ? { urls: run.outputs.map((output) => outputUrl(baseUrl, output)) } : null,
  error: run.failure ?? null,
  created_at: isoOrNull(run.createdAtMs),
  started_at: isoOrNull(run.startedAtMs),
  finished_at: isoOrNull(run.finishedAtMs),
  ...(run.status === 'processing' && state),
})
