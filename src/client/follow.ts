/**
 * Follows one run. `follow` is pure: it evaluates the response to a status request, and decides when to poll again. A
 * `Follower` sends the requests. The library waits for one run (`wait.ts`); `run` and `batch` schedule the requests of
 * many followers themselves.
 */
import { RushesError } from '../errors.js'
import { type Clock, every } from '../host/clock.js'
import { stepOf } from '../host/retry.js'
import { POLL_INTERVAL_MS } from '../protocol/limits.js'
import { type RunState, withoutUrls } from '../protocol/run-state.js'
import { fetchStatus, type StatusEngine, type StatusOutcome } from './fetch-status.js'

export interface FollowEngine extends StatusEngine {
  /** Returns `send` for one purpose in the rate limiter. `onSend` is called directly before the request is sent. */
  sendAs?(purpose: 'create' | 'status', onSend: () => void): StatusEngine['send']
}

/** Follows one run, with one status request at a time. */
export interface Follower {
  /**
   * Sends one status request. Rejects only with the signal's reason. An urgent request has the priority of a create;
   * others wait until all creates are sent.
   */
  poll(signal?: AbortSignal, options?: { readonly isUrgent?: boolean }): Promise<FollowStep>
  /** Returns the error of a wait that ends at its limit: `limit`, or the last error if the service never answered. */
  errorAtLimit(limit: RushesError): RushesError
}

/** Creates a follower. `createdAtMs`: monotonic time of the 201, if this process created the run. */
export function createFollower(engine: FollowEngine, id: string, createdAtMs: number | undefined): Follower {
  const { clock, limiter } = engine
  let current: Follow = beginFollow(createdAtMs, clock.monotonic())
  let silence: Silence | undefined
  return {
    async poll(signal, { isUrgent = false } = {}) {
      const onSend = () => {
        silence?.end()
        silence = watchSilence(clock)
      }
      const send = engine.sendAs?.(isUrgent ? 'create' : 'status', onSend) ?? engine.send
      const outcome = await fetchStatus({ ...engine, send }, id, signal).finally(() => silence?.end())
      silence = undefined
      const { after, step } = follow(current, outcome, { nowMs: clock.monotonic(), load: limiter.load() })
      current = after
      return step
    },
    errorAtLimit(limit) {
      const lastError = current.lastError ?? (silence?.isLong() ? noAnswer(engine, id) : undefined)
      return errorAtLimit({ ...current, lastError }, limit)
    },
  }
}

interface Silence {
  /** Whether the request has been unanswered for a second in which this process could have read the answer. */
  isLong(): boolean
  end(): void
}

const SILENCE_STEP_MS = 250
const MIN_SILENT_STEPS = 4

/**
 * Measures how long a request is unanswered. At the timeout, a request that was just sent does not show whether the
 * service answers. Time in which this process was busy or suspended does not show it either, so it counts as one step.
 */
function watchSilence(clock: Clock): Silence {
  let steps = 0
  const end = every(clock, SILENCE_STEP_MS, () => {
    steps++
  })
  return { isLong: () => steps >= MIN_SILENT_STEPS, end }
}

const noAnswer = ({ baseUrl }: FollowEngine, id: string): RushesError =>
  new RushesError('network', `${new URL(baseUrl).host} did not answer within the timeout.`, {
    runId: id,
    hint: 'Check the service URL and the network, or wait longer with --timeout.',
  })

/** Time for which a replica of the service may not know a new run. */
const REPLICA_LAG_MS = 10_000

/** State of following a run, between two status requests. Times are monotonic, in milliseconds. */
export interface Follow {
  /** Time at which the 201 was read; undefined for a run that another process created. */
  readonly createdAtMs: number | undefined
  readonly patience: Patience
  /** Time of the last response, or the start of following if none has arrived. */
  readonly lastAnswerMs: number
  /** Time of the last response that showed the run running. */
  readonly runningAtMs: number | undefined
  /** Whether any status request had a valid response. */
  readonly hasAnswered: boolean
  /** Number of responses that showed the run succeeded without URLs. */
  readonly withoutUrls: number
  /** Error of the last request, if it failed. */
  readonly lastError: RushesError | undefined
}

/** The result of one status request. */
export type FollowStep =
  | { readonly is: 'running'; readonly state: RunState; readonly next: PollWindow }
  /** `durationMs`: duration of the run, if known. */
  | { readonly is: 'ended'; readonly state: RunState; readonly durationMs: number | undefined }
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
  runningAtMs: undefined,
  hasAnswered: false,
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
    const after = {
      ...before,
      patience: FULL_PATIENCE,
      lastAnswerMs: nowMs,
      hasAnswered: true,
      lastError: undefined,
    }
    const times = before.withoutUrls + 1
    if (state.withoutUrls !== undefined && times <= MAX_URL_RETRIES) {
      const error = withoutUrls(state)
      const waiting = { ...after, withoutUrls: times }
      return { after: waiting, step: { is: 'error', error, state, againInMs: nextTryMs(times, 0) } }
    }
    if (state.phase !== 'running')
      return { after, step: { is: 'ended', state, durationMs: durationOf(state, before, nowMs) } }
    return { after: { ...after, runningAtMs: nowMs }, step: { is: 'running', state, next: pollWindow(load) } }
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

/** Returns `limit`, the timeout error, or the last error if the service never answered. */
export const errorAtLimit = ({ hasAnswered, lastError }: Follow, limit: RushesError): RushesError =>
  hasAnswered || lastError === undefined ? limit : lastError

/** Any 404 counts, with any body, if this process created the run shortly before. */
const isReplicaLag = (error: RushesError, { createdAtMs }: Follow, nowMs: number): boolean =>
  error.httpStatus === 404 && createdAtMs !== undefined && nowMs - createdAtMs < REPLICA_LAG_MS

/** Maximum time between two status requests for an estimate of the duration: the run ended between them. */
const MAX_UNCERTAINTY_MS = 5_000

/**
 * Returns the duration by the service's timestamps, else estimates the end as the middle between the last two status
 * requests.
 */
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
