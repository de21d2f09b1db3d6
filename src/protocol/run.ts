/**
 * A run and its statuses. The interface names one status, `succeeded`; the names of the others are not shown, so
 * the list of failures is a list of words that such services use, and every word outside it means: still going.
 */

export const SUCCESS_STATUS = 'succeeded'

/** Lower case; case does not matter when a status is compared with these. */
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

/** What a status comes to. */
export type Phase = 'going' | 'succeeded' | 'failed'

/** What a status means. `furtherFailures` are the user's own words for failure, beside the list above. */
export function phaseOf(status: string, furtherFailures: readonly string[] = []): Phase {
  if (status === SUCCESS_STATUS) return 'succeeded'
  const word = status.trim().toLowerCase()
  const failures = [...FAILURE_STATUSES, ...furtherFailures.map((each) => each.trim().toLowerCase())]
  return failures.includes(word) ? 'failed' : 'going'
}

/** A run as one look at the service shows it. */
export interface RunState {
  readonly id: string
  /** The service's own word. */
  readonly status: string
  readonly phase: Phase
  /** The outputs: http(s) URLs, at least one when the phase is `succeeded`, otherwise none. */
  readonly urls: readonly string[]
  /** What the service says of a failure, when it says anything. */
  readonly failure: string | undefined
  /** ISO 8601 in UTC, when the service says so. */
  readonly createdAt: string | undefined
  readonly finishedAt: string | undefined
  /** The service's own object, untouched. */
  readonly service: unknown
}

/** The statuses of the local service, in the order of a run's life. */
export const LOCAL_STATUSES = ['queued', 'processing', 'succeeded', 'failed'] as const
export type LocalStatus = (typeof LOCAL_STATUSES)[number]

/** Legal moves of a run of the local service. `processing` goes back to `queued` when its renderer is gone. */
export const LOCAL_MOVES: Readonly<Record<LocalStatus, readonly LocalStatus[]>> = {
  queued: ['processing'],
  processing: ['succeeded', 'failed', 'queued'],
  succeeded: [],
  failed: [],
}
