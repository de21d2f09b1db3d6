/**
 * A run and its statuses. The interface names only `succeeded`. Failures are recognized by a list of common words;
 * every other status means that the run is not finished.
 */

const SUCCESS_STATUS = 'succeeded'

/** In lower case; compared without case. */
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

/** `furtherFailures`: the statuses of the setting `failureStatuses`. */
export function phaseOf(status: string, furtherFailures: readonly string[] = []): Phase {
  if (status === SUCCESS_STATUS) return 'succeeded'
  const word = status.trim().toLowerCase()
  const failures = [...FAILURE_STATUSES, ...furtherFailures.map((each) => each.trim().toLowerCase())]
  return failures.includes(word) ? 'failed' : 'running'
}

/** A run as one status request shows it. */
export interface RunState {
  readonly id: string
  /** As the service wrote it. */
  readonly status: string
  readonly phase: Phase
  /** The outputs: http(s) URLs, at least one when the phase is `succeeded`, otherwise none. */
  readonly urls: readonly string[]
  /** The service's error message of a failed run. */
  readonly failure: string | undefined
  /** ISO 8601 in UTC; undefined when the service does not say. */
  readonly createdAt: string | undefined
  readonly finishedAt: string | undefined
  /** The service's object, unchanged. */
  readonly service: unknown
}

/** The statuses of the local service, in the order of a run's life. */
export const LOCAL_STATUSES = ['queued', 'processing', 'succeeded', 'failed'] as const
export type LocalStatus = (typeof LOCAL_STATUSES)[number]

/** Legal status changes of the local service. A run returns to `queued` when its renderer is gone. */
export const LOCAL_MOVES: Readonly<Record<LocalStatus, readonly LocalStatus[]>> = {
  queued: ['processing'],
  processing: ['succeeded', 'failed', 'queued'],
  succeeded: [],
  failed: [],
}
