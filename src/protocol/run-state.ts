/**
 * A run and its statuses. The interface defines only `succeeded`. A list of common words recognizes failures; every
 * other status means that the run is still running.
 */
import { RushesError } from '../errors.js'
import { printable, quoteWord, shortened } from './text.js'

const SUCCESS_STATUS = 'succeeded'

/** Code of a run whose credits stay charged until an operator decides: its provider may have accepted it. */
export const OUTCOME_UNKNOWN = 'outcome_unknown'

/** Code of a run whose outcome was unknown, and that an operator has refunded. */
export const REFUNDED = 'refunded'

/** Code of a run that its provider did not accept, because of the account of the service's owner. */
export const PROVIDER_REFUSED = 'provider_refused'

/** Statuses that mean failure, in lower case. */
export const FAILURE_STATUSES: readonly string[] = [
  'failed',
  'failure',
  'error',
  'errored',
  'canceled',
  'cancelled',
  'aborted',
  'expired',
  'rejected',
  'timeout',
  'timed_out',
]

export type Phase = 'running' | 'succeeded' | 'failed'

/**
 * Returns the phase for a status, without regard to its case and outer spaces. `furtherFailures`: statuses from the
 * setting `failureStatuses`.
 */
export function phaseOf(status: string, furtherFailures: readonly string[] = []): Phase {
  const word = status.trim().toLowerCase()
  if (word === SUCCESS_STATUS) return 'succeeded'
  const failures = [...FAILURE_STATUSES, ...furtherFailures.map((each) => each.trim().toLowerCase())]
  return failures.includes(word) ? 'failed' : 'running'
}

/** State of a run in the response to one status request. */
export interface RunState {
  readonly id: string
  /** The status exactly as in the response. */
  readonly status: string
  readonly phase: Phase
  /** http(s) URLs of the outputs: none unless the phase is `succeeded`. */
  readonly urls: readonly string[]
  /** Why a run that succeeded has no URLs. Undefined for all others. */
  readonly withoutUrls?: string | undefined
  /** The service's error message of a failed run, or of one that succeeded without URLs. */
  readonly failure: string | undefined
  /** ISO 8601 in UTC; undefined if the response does not contain it. */
  readonly createdAt: string | undefined
  readonly finishedAt: string | undefined
  /** The parsed object of the response, unchanged. */
  readonly service: unknown
}

/**
 * Returns the error of a run that has succeeded without URLs. They may be late or withheld, and the run may be paid
 * for, so the hint does not say how to create another run.
 */
export function withoutUrls({ id, status, withoutUrls: why, failure }: RunState): RushesError {
  const reason = failure === undefined ? '' : ` The service says: ${shortened(printable(failure), 500)}`
  return new RushesError(
    'bad_response',
    `The run ended (${printable(status)}) without a file: ${why}.${reason}`,
    {
      runId: id,
      hint:
        'The service may have withheld the result (moderation). Your account shows whether it was charged. ' +
        `\`rushes show ${quoteWord(id)} --json\` prints the response, and \`rushes status ${quoteWord(id)}\` asks again.`,
    },
  )
}

/**
 * Returns the error of a run that has ended without files: the same in `run`, `wait` and `status`. `isLocal`: no account was
 * charged.
 */
export function endErrorOf(state: RunState, isLocal: boolean): RushesError | undefined {
  if (state.withoutUrls !== undefined) return withoutUrls(state)
  return state.phase === 'failed' ? runFailed(state, isLocal) : undefined
}

/** The code in the service's object of a run that failed or was canceled. */
export const errorCodeOf = ({ service }: RunState): unknown =>
  (service as { readonly error?: { readonly code?: unknown } | null } | null)?.error?.code

/** Whether the provider of the model may have accepted the run, so that another one may be paid twice. */
export const isOutcomeUnknown = (state: RunState): boolean => errorCodeOf(state) === OUTCOME_UNKNOWN

export const isCanceled = ({ status }: RunState): boolean => /^cancell?ed$/i.test(status.trim())

function runFailed(state: RunState, isLocal: boolean): RushesError {
  const end = /^failed$/i.test(state.status) ? 'failed' : `ended with the status ${state.status}`
  const reason = state.failure === undefined ? 'the service gave no reason.' : shortened(state.failure, 2_000)
  const message = isCanceled(state)
    ? state.failure === undefined
      ? 'The run was canceled.'
      : reason
    : `The run ${end}: ${reason}`
  const mentionsRefund = /\brefunded\b/i.test(state.failure ?? '')
  return new RushesError('run_failed', message, {
    runId: state.id,
    hint: isOutcomeUnknown(state)
      ? 'Nothing was downloaded. A run may exist at the provider and cost money: look at its list before you create it ' +
        `again. To fetch the result of its job, the operator of the service runs \`rushes admin run adopt ` +
        `${quoteWord(state.id)} <job>${isLocal ? ' --data <state folder>/local' : ''}\`.`
      : `Nothing was downloaded. ${isLocal || mentionsRefund ? '' : 'Your account shows whether it was charged. '}` +
        `\`rushes show ${quoteWord(state.id)}\` shows its input.`,
  })
}

/**
 * Text for how far an unfinished run is: `40 %`, or `3 before it` in the queue of the model's server. Empty if the
 * service says neither.
 */
export function progressText({ progress, queue_position: before }: ProgressFields): string {
  if (typeof progress === 'number' && progress >= 0 && progress <= 1) return `${Math.floor(progress * 100)} %`
  return typeof before === 'number' && before > 0 ? `${before.toLocaleString('en')} before it` : ''
}

/** For example `processing, 40 %`. */
export const withProgress = (status: string, progress: string): string =>
  progress === '' ? status : `${status}, ${progress}`

/** Fields of a run object, unchecked. */
interface ProgressFields {
  readonly progress?: unknown
  readonly queue_position?: unknown
}

/** The statuses of the local service, in the order of a run's life. */
export const LOCAL_STATUSES = ['queued', 'processing', 'succeeded', 'failed', 'canceled'] as const
export type LocalStatus = (typeof LOCAL_STATUSES)[number]

/** Allowed status changes in the local service. A run returns to `queued` if its renderer ends before the run does. */
export const LOCAL_MOVES: Readonly<Record<LocalStatus, readonly LocalStatus[]>> = {
  queued: ['processing', 'canceled'],
  processing: ['succeeded', 'failed', 'queued', 'canceled'],
  succeeded: [],
  failed: [],
  canceled: [],
}
