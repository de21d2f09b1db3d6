/**
 * How a run is followed, pure: what the answer to a status request means for whoever waits, and when to ask again.
 * `wait`, `run` and `batch` all decide by `follow`; they differ in how they sleep and in what they do with a result.
 */
import type { RushesError } from '../errors.js'
import type { RunState } from '../protocol/run-state.js'
import type { StatusOutcome } from './fetch-status.js'
import { nextTryMs, type PollWindow, pollWindow } from './pace.js'
import { afterFailure, FULL_PATIENCE, isExhausted, type Patience } from './patience.js'

/** A replica of the service may not know a run that was created less than this ago. */
const REPLICA_LAG_MS = 10_000

/** What is known of a followed run between two status requests. Instants are monotonic, in milliseconds. */
export interface Follow {
  /** When the 201 was read; undefined for a run that another process created. */
  readonly createdAtMs: number | undefined
  readonly patience: Patience
  /** When the last answer came, or the following began. */
  readonly lastAnswerMs: number
  /** When the run was last seen running. */
  readonly runningAtMs: number | undefined
  /** Whether any request has had a usable answer. */
  readonly hasAnswered: boolean
  /** Why the last request had none. */
  readonly trouble: RushesError | undefined
}

/** What one status request leads to. */
export type FollowStep =
  | { readonly is: 'running'; readonly state: RunState; readonly next: PollWindow }
  /** `durationMs`: how long the run took, where that is known. */
  | { readonly is: 'ended'; readonly state: RunState; readonly durationMs: number | undefined }
  /** No usable answer; it may come with a later request. */
  | { readonly is: 'trouble'; readonly error: RushesError; readonly againInMs: number }
  /** No usable answer will come, or none came for too long: the wait is over. */
  | { readonly is: 'gave up'; readonly error: RushesError }

export const beginFollow = (createdAtMs: number | undefined, nowMs: number): Follow => ({
  createdAtMs,
  patience: FULL_PATIENCE,
  lastAnswerMs: nowMs,
  runningAtMs: undefined,
  hasAnswered: false,
  trouble: undefined,
})

export interface FollowContext {
  readonly nowMs: number
  /** The share of the key's budget that is in use, 0 to 1. */
  readonly load: number
}

export function follow(
  before: Follow,
  outcome: StatusOutcome,
  { nowMs, load }: FollowContext,
): { readonly after: Follow; readonly step: FollowStep } {
  if (outcome.kind === 'state') {
    const { state } = outcome
    const after = {
      ...before,
      patience: FULL_PATIENCE,
      lastAnswerMs: nowMs,
      hasAnswered: true,
      trouble: undefined,
    }
    if (state.phase !== 'going')
      return { after, step: { is: 'ended', state, durationMs: durationOf(state, before, nowMs) } }
    return { after: { ...after, runningAtMs: nowMs }, step: { is: 'running', state, next: pollWindow(load) } }
  }
  const { error } = outcome
  if (outcome.kind === 'final' && !isReplicaLag(error, before, nowMs))
    return { after: before, step: { is: 'gave up', error } }
  const patience = afterFailure(before.patience, nowMs - before.lastAnswerMs)
  const after = { ...before, patience, lastAnswerMs: nowMs, trouble: error }
  if (isExhausted(patience))
    return {
      after,
      step: { is: 'gave up', error: error.with({ consequence: 'No valid response for two minutes.' }) },
    }
  const wish = outcome.kind === 'trouble' ? outcome.retryAfterMs : 0
  return { after, step: { is: 'trouble', error, againInMs: nextTryMs(patience.failures, wish) } }
}

/** Any 404, whatever its body says, right after the create of this process. */
const isReplicaLag = (error: RushesError, { createdAtMs }: Follow, nowMs: number): boolean =>
  error.httpStatus === 404 && createdAtMs !== undefined && nowMs - createdAtMs < REPLICA_LAG_MS

/** A run ended some time between two status requests; when they are further apart, nothing is learned from it. */
const MAX_UNCERTAINTY_MS = 5_000

/** By the service's own times, else the middle of the time in which the run ended. */
function durationOf(
  state: RunState,
  { createdAtMs, runningAtMs }: Follow,
  nowMs: number,
): number | undefined {
  const { createdAt, finishedAt } = state
  if (createdAt !== undefined && finishedAt !== undefined)
    return Math.max(0, Date.parse(finishedAt) - Date.parse(createdAt))
  const lastMs = runningAtMs ?? createdAtMs
  if (createdAtMs === undefined || lastMs === undefined || nowMs - lastMs > MAX_UNCERTAINTY_MS)
    return undefined
  return (lastMs + nowMs) / 2 - createdAtMs
}

/** The error of a wait whose limit has passed: where the service never answered, that is the error. */
export const errorAtLimit = ({ hasAnswered, trouble }: Follow, limit: RushesError): RushesError =>
  hasAnswered || trouble === undefined ? limit : trouble
