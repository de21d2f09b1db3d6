/**
 * A run and its statuses. The interface defines only `succeeded`. A list of common words recognizes failures; every
 * other status means that the run is still running.
 */

const SUCCESS_STATUS = 'succeeded'

/** Statuses that mean failure, in lower case. The comparison is not case-sensitive. */
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

/** Returns the phase for a status. `furtherFailures`: statuses from the setting `failureStatuses`. */
export function phaseOf(status: string, furtherFailures: readonly string[] = []): Phase {
  if (status === SUCCESS_STATUS) return 'succeeded'
  const word = status.trim().toLowerCase()
  const failures = [...FAILURE_STATUSES, ...furtherFailures.map((each) => each.trim().toLowerCase())]
  return failures.includes(word) ? 'failed' : 'running'
}

/** State of a run in the response to one status request. */
export interface RunState {
  readonly id: string
  /** The status exactly as in the response. */
  readonly status: string
  readonly phase: Phase
  /** http(s) URLs of the outputs: at least one if the phase is `succeeded`, otherwise none. */
  readonly urls: readonly string[]
  /** The service's error message of a failed run. */
  readonly failure: string | undefined
  /** ISO 8601 in UTC; undefined if the response does not contain it. */
  readonly createdAt: string | undefined
  readonly finishedAt: string | undefined
  /** The parsed object of the response, unchanged. */
  readonly service: unknown
}

/** The statuses of the local service, in the order of a run's life. */
export const LOCAL_STATUSES = ['queued', 'processing', 'succeeded', 'failed'] as const
export type LocalStatus = (typeof LOCAL_STATUSES)[number]

/** Allowed status changes in the local service. A run returns to `queued` if its renderer ends before the run does. */
export const LOCAL_MOVES: Readonly<Record<LocalStatus, readonly LocalStatus[]>> = {
  queued: ['processing'],
  processing: ['succeeded', 'failed', 'queued'],
  succeeded: [],
  failed: [],
}
