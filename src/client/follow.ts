/** How a run is followed: what the response to one status request means, and when to send the next. Pure. */
import type { RushesError } from '../errors.js'
import { stepOf } from '../host/retry.js'
import { POLL_INTERVAL_MS } from '../protocol/limits.js'
import type { RunState } from '../protocol/run-state.js'
import type { StatusOutcome } from './fetch-status.js'
import { withoutUrls } from './run-errors.js'

/** Time for which a replica of the service may not know a new run. */
const REPLICA_LAG_MS = 10_000

/** State of following a run, between two status requests. Times are monotonic, in milliseconds. */
export interface Follow {
  /** Time at which the 201 was read; undefined for a run that another process created. */
  readonly createdAtMs: number | undefined
  readonly patience: Patience
  /** Time of the last response, or the start of following if none has arrived. */
  readonly lastAnswerMs: number
  /** Number of responses that showed the run succeeded without URLs. */
  readonly withoutUrls: number
  /** Error of the last request, if it failed. */
  readonly lastError: RushesError | undefined
}

/** The result of one status request. */
export type FollowStep =
  /** The next request is sent after a random time in this range, in milliseconds from now. */
  | { readonly is: 'running'; readonly state: RunState; readonly next: PollWindow }
  | { readonly is: 'ended'; readonly state: RunState }
  /** No valid response; a later request may get one. `state`: of a run that has succeeded, but whose URLs are missing. */
  | {
      readonly is: 'error'
      readonly error: RushesError
      readonly againInMs: number
      readonly state?: RunState
    }
  /** The wait ends: no valid response is possible, or none arrived for too long. */
  | { readonly is: 'gave up'; readonly error: RushesError }

export const beginFollow = (createdAtMs: number | undefined, nowMs: number): Follow => ({
  createdAtMs,
  patience: FULL_PATIENCE,
  lastAnswerMs: nowMs,
  withoutUrls: 0,
  lastError: undefined,
})

/** Further status requests for the URLs of a run that has succeeded without them: they may be late. */
const MAX_URL_RETRIES = 3

interface FollowContext {
  readonly nowMs: number
  /** Used share of the key's rate limit, 0 to 1. */
  readonly load: number
}

export function follow(
  before: Follow,
  outcome: StatusOutcome,
  { nowMs, load }: FollowContext,
): { readonly after: Follow; readonly step: FollowStep } {
  if (outcome.kind === 'state') {
    const { state } = outcome
    const after = { ...before, patience: FULL_PATIENCE, lastAnswerMs: nowMs, lastError: undefined }
    const times = before.withoutUrls + 1
    if (state.withoutUrls !== undefined && times <= MAX_URL_RETRIES) {
      const error = withoutUrls(state)
      const waiting = { ...after, withoutUrls: times }
      return { after: waiting, step: { is: 'error', error, state, againInMs: nextTryMs(times, 0) } }
    }
    if (state.phase !== 'running') return { after, step: { is: 'ended', state } }
    return { after, step: { is: 'running', state, next: pollWindow(load) } }
  }
  const { error } = outcome
  if (outcome.kind === 'final' && !isReplicaLag(error, before, nowMs))
    return { after: before, step: { is: 'gave up', error } }
  const patience = afterFailure(before.patience, nowMs - before.lastAnswerMs)
  const after = { ...before, patience, lastAnswerMs: nowMs, lastError: error }
  if (isExhausted(patience))
    return {
      after,
      step: { is: 'gave up', error: error.with({ consequence: 'No valid response for two minutes.' }) },
    }
  const requestedMs = outcome.kind === 'error' ? outcome.retryAfterMs : 0
  return { after, step: { is: 'error', error, againInMs: nextTryMs(patience.failures, requestedMs) } }
}

/** Any 404 counts, with any body, if this process created the run shortly before. */
const isReplicaLag = (error: RushesError, { createdAtMs }: Follow, nowMs: number): boolean =>
  error.httpStatus === 404 && createdAtMs !== undefined && nowMs - createdAtMs < REPLICA_LAG_MS

/** Longest pause between status requests, when the key's whole rate limit is in use. */
const MAX_PAUSE_MS = 5_000

/** Range for the next status request, in milliseconds from now. */
interface PollWindow {
  readonly soonestMs: number
  readonly latestMs: number
}

/** Longest pause while less than a quarter of the key's rate limit is in use. */
const MAX_IDLE_PAUSE_MS = 1_200

/**
 * Returns the range for the next poll: 1 to 1.2 s while less than a quarter of the key's rate limit is in use, 1 to 2 s up
 * to half of it, and up to 4 to 5 s at full use. `load`: used share, 0 to 1.
 */
export function pollWindow(load: number): PollWindow {
  const { min, max } = POLL_INTERVAL_MS
  if (load < 0.25) return { soonestMs: min, latestMs: MAX_IDLE_PAUSE_MS }
  const slower = Math.max(0, load - 0.5) * 2 * (MAX_PAUSE_MS - max)
  return { soonestMs: min + slower, latestMs: max + slower }
}

const RETRY_WAITS_MS = [1_000, 2_000, 4_000, 8_000] as const

/**
 * Returns the wait after n failed status requests in a row: 1, 2, 4, 8, 8 … s, or longer if the service asks for it.
 */
export const nextTryMs = (failures: number, retryAfterMs: number): number =>
  Math.max(stepOf(RETRY_WAITS_MS, failures), retryAfterMs)

/**
 * State of a series of failures. A wait ends after at least six failures in a row, over at least two minutes in which
 * this machine was awake.
 */
export interface Patience {
  /** Failed requests in a row. */
  readonly failures: number
  readonly wakingMs: number
}

const MIN_TRIES = 6
const MIN_WAKING_MS = 120_000
/**
 * Maximum time per request that counts as awake: enough for the longest accepted `Retry-After`, or for the timeout of
 * one request.
 */
const MAX_STEP_MS = 75_000

export const FULL_PATIENCE: Patience = { failures: 0, wakingMs: 0 }

/** `elapsedMs`: time since the previous request, by the clock. */
export const afterFailure = ({ failures, wakingMs }: Patience, elapsedMs: number): Patience => ({
  failures: failures + 1,
  wakingMs: wakingMs + Math.min(Math.max(0, elapsedMs), MAX_STEP_MS),
})

export const isExhausted = ({ failures, wakingMs }: Patience): boolean =>
  failures >= MIN_TRIES && wakingMs >= MIN_WAKING_MS
