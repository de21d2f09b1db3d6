/** A run as the local service stores it, and the run object of its responses. */
import type { Kind, ModelInput } from '../../protocol/models.js'
import type { RunCost } from '../../protocol/price.js'
import { type LocalStatus, OUTCOME_UNKNOWN } from '../../protocol/run-state.js'
import { asSentence, percentDecoded } from '../../protocol/text.js'
import type { StoredJob } from '../engines/engine.js'
import { isoOrNull } from '../rules/times.js'

export interface OutputName {
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
  /** Name for log messages, and for a browser that saves the file. */
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
  /** As sent, with a `StoredImage` for each data: URL in `image_urls`. */
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
  /** What the provider charged. Undefined if it did not say it, and for a run with a price. */
  readonly cost?: RunCost | undefined
}

/** A run that a worker has claimed. */
export interface HeldRun extends StoredRun {
  /** The number of the claim. */
  readonly attempt: number
  /** The model that it carries, as JSON. Undefined for a run of an earlier version. */
  readonly document?: string | undefined
  /** The job at the server of its model, as it was stored last. */
  job?: StoredJob | undefined
  cost?: RunCost | undefined
}

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
 * `state`, which only a run that is being rendered can have, and `cost`.
 */
export const runObject = (run: StoredRun, baseUrl: string, state?: RenderState) => ({
  id: run.id,
  model: run.model,
  status: run.status,
  input: run.input,
  output:
    run.status === 'succeeded' ? { urls: run.outputs.map((output) => outputUrl(baseUrl, output)) } : null,
  error: run.failure ?? null,
  created_at: isoOrNull(run.createdAtMs),
  started_at: isoOrNull(run.startedAtMs),
  finished_at: isoOrNull(run.finishedAtMs),
  ...(run.cost && { cost: run.cost }),
  ...(run.status === 'processing' && state),
})
