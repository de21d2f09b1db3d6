/**
 * A run and its statuses. The interface defines only `succeeded`. A list of common words recognizes failures; every
 * other status means that the run is still running.
 */
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

/** The code in the service's object of a run that failed or was canceled. */
export const errorCodeOf = ({ service }: RunState): unknown =>
  (service as { readonly error?: { readonly code?: unknown } | null } | null)?.error?.code

/** Whether the provider of the model may have accepted the run, so that another one may be paid twice. */
export const isOutcomeUnknown = (state: RunState): boolean => errorCodeOf(state) === OUTCOME_UNKNOWN

export const isCanceled = ({ status }: RunState): boolean => /^cancell?ed$/i.test(status.trim())

/**
 * Text for how far a running run is: `40 %`, or `3 before it` in the queue of the model's server. Empty if it has ended, or
 * if the service says neither.
 */
export function progressOf({ phase, service }: RunState): string {
  if (phase !== 'running' || service === null) return ''
  const { progress, queue_position: before } = service as Readonly<Record<string, unknown>>
  if (typeof progress === 'number' && progress >= 0 && progress <= 1) return `${Math.floor(progress * 100)} %`
  return typeof before === 'number' && before > 0 ? `${before.toLocaleString('en')} before it` : ''
}

/** For example `processing, 40 %`. */
export const withProgress = (status: string, progress: string): string =>
  progress === '' ? status : `${status}, ${progress}`

/** The statuses of the local service, in the order of a run's life. */
export const LOCAL_STATUSES = ['queued', 'processing', 'succeeded', 'failed', 'canceled'] as const
export type LocalStatus = (typeof LOCAL_STATUSES)[number]
