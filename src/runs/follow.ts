/** How a run is followed: what the response to one status request means, when to send the next, and how a run ends. Pure. */
import type { StatusOutcome } from '../client/status.js'
import { RushesError } from '../errors.js'
import { stepOf } from '../host/retry.js'
import { POLL_INTERVAL_MS } from '../protocol/limits.js'
import { isCanceled, isOutcomeUnknown, type RunState } from '../protocol/run-state.js'
import { printable, shortened, withEllipsis } from '../protocol/text.js'
import { formatDuration } from '../protocol/units.js'

/** State of following a run, between two status requests. Times are monotonic, in milliseconds. */
export interface Follow {
  /** Time at which the 201 was read; undefined for a run that another process created. */
  readonly createdAtMs: number | undefined
  /** Time of the last response, or the start of following if none has arrived. */
  readonly lastAnswerMs: number
  /** Failed requests in a row. */
  readonly failures: number
  /** Time of these failures in which this machine was awake. */
  readonly wakingMs: number
  /** Error of the last request, if it failed. */
  readonly lastError: RushesError | undefined
  /** Number of responses that showed the run succeeded without URLs. */
  readonly withoutUrls: number
}

/** The result of one status request. */
export type FollowStep =
  | { readonly is: 'ended'; readonly state: RunState }
  /** No valid response is possible, or none arrived for too long. */
  | { readonly is: 'gave up'; readonly error: RushesError }
  /** The next request is sent after a random time in this range. */
  | {
      readonly is: 'again'
      readonly inMs: PollWindow
      /** Of a run that is running, or that has succeeded but whose URLs are missing. */
      readonly state?: RunState
      /** There was no valid response, or the URLs are missing. */
      readonly error?: RushesError
    }

/** Milliseconds from now. */
interface PollWindow {
  readonly min: number
  readonly max: number
}

export const beginFollow = (createdAtMs: number | undefined, nowMs: number): Follow => ({
  createdAtMs,
  lastAnswerMs: nowMs,
  failures: 0,
  wakingMs: 0,
  lastError: undefined,
  withoutUrls: 0,
})

/** Further status requests for the URLs of a run that has succeeded without them: they may be late. */
const MAX_URL_RETRIES = 3
/** Waits after failed status requests in a row; the last one repeats. */
const RETRY_WAITS_MS = [1_000, 2_000, 4_000, 8_000] as const
/** A wait ends after at least this many failures in a row, over at least two minutes in which this machine was awake. */
const MIN_TRIES = 6
const MIN_WAKING_MS = 120_000
/**
 * Maximum time per request that counts as awake: enough for the longest accepted `Retry-After`, or for the timeout of
 * one request.
 */
const MAX_STEP_MS = 75_000
/** Time for which a replica of the service may not know a new run. */
const REPLICA_LAG_MS = 10_000

/** `load`: used share of the key's rate limit, 0 to 1. */
export function follow(
  before: Follow,
  outcome: StatusOutcome,
  { nowMs, load }: { readonly nowMs: number; readonly load: number },
): { readonly after: Follow; readonly step: FollowStep } {
  if (outcome.kind === 'state') return afterState(before, outcome.state, nowMs, load)
  const { error } = outcome
  // Any 404 counts, with any body, if this process created the run shortly before.
  const { createdAtMs = Number.NEGATIVE_INFINITY } = before
  const isReplicaLag = error.httpStatus === 404 && nowMs - createdAtMs < REPLICA_LAG_MS
  if (outcome.kind === 'final' && !isReplicaLag) return { after: before, step: { is: 'gave up', error } }
  const failures = before.failures + 1
  const wakingMs = before.wakingMs + Math.min(Math.max(0, nowMs - before.lastAnswerMs), MAX_STEP_MS)
  const after = { ...before, failures, wakingMs, lastAnswerMs: nowMs, lastError: error }
  if (failures >= MIN_TRIES && wakingMs >= MIN_WAKING_MS) {
    const given = error.with({ consequence: 'No valid response for two minutes.' })
    return { after, step: { is: 'gave up', error: given } }
  }
  const requestedMs = outcome.kind === 'error' ? outcome.retryAfterMs : 0
  const inMs = exactly(Math.max(stepOf(RETRY_WAITS_MS, failures), requestedMs))
  return { after, step: { is: 'again', inMs, error } }
}

function afterState(
  before: Follow,
  state: RunState,
  nowMs: number,
  load: number,
): { readonly after: Follow; readonly step: FollowStep } {
  const after = { ...beginFollow(before.createdAtMs, nowMs), withoutUrls: before.withoutUrls }
  if (state.phase === 'running') return { after, step: { is: 'again', inMs: pollWindow(load), state } }
  const times = before.withoutUrls + 1
  if (state.withoutUrls === undefined || times > MAX_URL_RETRIES)
    return { after, step: { is: 'ended', state } }
  const inMs = exactly(stepOf(RETRY_WAITS_MS, times))
  return {
    after: { ...after, withoutUrls: times },
    step: { is: 'again', inMs, state, error: withoutUrls(state) },
  }
}

const exactly = (ms: number): PollWindow => ({ min: ms, max: ms })

/** Longest pause between status requests, when the key's whole rate limit is in use. */
const MAX_PAUSE_MS = 5_000
/** Longest pause while less than a quarter of the key's rate limit is in use. */
const MAX_IDLE_PAUSE_MS = 1_050

/**
 * Returns the range for the next poll: 1 to 1.05 s while less than a quarter of the key's rate limit is in use, 1 to 2 s up
 * to half of it, and up to 4 to 5 s at full use.
 */
export function pollWindow(load: number): PollWindow {
  const { min, max } = POLL_INTERVAL_MS
  if (load < 0.25) return { min, max: MAX_IDLE_PAUSE_MS }
  const slower = Math.max(0, load - 0.5) * 2 * (MAX_PAUSE_MS - max)
  return { min: min + slower, max: max + slower }
}

/**
 * Returns the error of a run that has succeeded without URLs. They may be late or withheld, and the run may be paid
 * for, so the hint does not say how to create another run.
 */
export function withoutUrls({ id, status, withoutUrls: why, failure }: RunState): RushesError {
  const reason = failure === undefined ? '' : ` The service says: ${shortened(failure, 500)}`
  return new RushesError(
    'bad_response',
    `The run ended (${printable(status)}) without a file: ${why}.${reason}`,
    {
      runId: id,
      hint: 'The service may have withheld the result (moderation). Your account shows whether it was charged.',
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

/** The sentence about a run, or several, that a command no longer waits for. */
export function stillRunning(subject: string, timeoutMs: number, isLocal: boolean, is = 'is'): string {
  const limit =
    timeoutMs < 1_000 ? `${Math.round(timeoutMs)} ms` : formatDuration(1_000 * Math.round(timeoutMs / 1_000))
  return isLocal
    ? `Timed out after ${limit}; ${subject} ${is} not finished.`
    : `${subject} ${is} still running after ${limit}.`
}

function runFailed(state: RunState, isLocal: boolean): RushesError {
  const end = /^failed$/i.test(state.status) ? 'failed' : `ended with the status ${state.status}`
  const reason =
    state.failure === undefined ? 'the service gave no reason.' : withEllipsis(state.failure, 2_000)
  const message = isCanceled(state)
    ? state.failure === undefined
      ? 'The run was canceled.'
      : reason
    : `The run ${end}: ${reason}`
  const mentionsRefund = /\brefunded\b/i.test(state.failure ?? '')
  return new RushesError('run_failed', message, {
    runId: state.id,
    hint: isOutcomeUnknown(state)
      ? 'Nothing was downloaded. A run may exist at the provider and cost money: look at its list before you create it again.'
      : `Nothing was downloaded.${isLocal || mentionsRefund ? '' : ' Your account shows whether it was charged.'}`,
  })
}
