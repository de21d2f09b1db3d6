/** Sends one status request, one request to cancel a run, or one for the list of models, and classifies its response. */
import { EXIT, RushesError } from '../errors.js'
import { HttpFailure } from '../host/http.js'
import { BodyTooLarge } from '../host/response-body.js'
import { retry, retryAfterMs, stepOf } from '../host/retry.js'
import { cancelUrl, isOfRun, modelsUrl, runUrl } from '../protocol/id.js'
import { RATE_LIMITED_WAITS_MS } from '../protocol/limits.js'
import { isObject, parseErrorBody, parseJson, parseRun } from '../protocol/parse.js'
import type { RunState } from '../protocol/run-state.js'
import {
  badResponse,
  type Engine,
  errorOfAnswer,
  isRateLimited,
  networkError,
  readAnswer,
  type ServiceAnswer,
} from './requests.js'

export type StatusOutcome =
  | { readonly kind: 'state'; readonly state: RunState }
  /** A later request may succeed: after a network error, a 5xx, a 429 or an invalid response. */
  | { readonly kind: 'error'; readonly error: RushesError; readonly retryAfterMs: number }
  /** A later request would fail too: after 401, 402, 403, 404, an exhausted quota or any other refusal. */
  | { readonly kind: 'final'; readonly error: RushesError }

const MAX_REDIRECTS = 5

/**
 * Sends one status request. Rejects only with the signal's reason: every response, and a missing response, is an
 * outcome.
 */
export const fetchStatus = (engine: Engine, id: string, signal?: AbortSignal): Promise<StatusOutcome> =>
  outcomeOfRequest(engine, id, () => follow(engine, 'GET', runUrl(engine.baseUrl, id), signal), signal)

/** Sends one request to cancel a run. `onAccepted`: called for a response without the run, whose state is then asked for. */
const sendCancel = (
  engine: Engine,
  id: string,
  signal: AbortSignal | undefined,
  onAccepted: () => void,
): Promise<StatusOutcome> =>
  outcomeOfRequest(
    engine,
    id,
    async () => {
      const answer = await follow(engine, 'POST', cancelUrl(engine.baseUrl, id), signal)
      if (answer.status === 204) {
        onAccepted()
        return follow(engine, 'GET', runUrl(engine.baseUrl, id), signal)
      }
      const refusal = answer.status < 400 ? undefined : errorOfAnswer(answer)
      if (refusal !== undefined && isUnknownEndpoint(answer))
        throw new RushesError(refusal.code, 'This service cannot cancel runs; the run continues.', {
          exitCode: EXIT.refused,
          httpStatus: answer.status,
        })
      if (refusal?.exitCode === EXIT.refused)
        throw refusal.with({ consequence: 'The run was not canceled and may continue.' })
      return answer
    },
    signal,
  )

/** Whether the service does not have the endpoint, which is an extension. */
const isUnknownEndpoint = ({ status, text }: ServiceAnswer): boolean =>
  status === 405 || status === 501 || (status === 404 && parseErrorBody(text).code !== 'run_not_found')

async function outcomeOfRequest(
  engine: Engine,
  id: string,
  send: () => Promise<ServiceAnswer>,
  signal?: AbortSignal,
): Promise<StatusOutcome> {
  try {
    const outcome = outcomeOf(await send(), id, engine)
    if (outcome.kind === 'error' && outcome.error.httpStatus === 429)
      engine.limiter.holdBack(Math.max(1_000, outcome.retryAfterMs))
    return outcome
  } catch (error) {
    // The abort reason may be a RushesError too, but it is not an error of the service.
    if (signal?.aborted) throw signal.reason
    if (error instanceof RushesError) {
      const named = error.with({ runId: id })
      // A setting is wrong, or the service has no such endpoint, so a retry would fail in the same way.
      return error.exitCode === EXIT.usage || error.exitCode === EXIT.refused
        ? { kind: 'final', error: named }
        : temporary(named)
    }
    if (error instanceof BodyTooLarge)
      return temporary(badResponse(`The service sent an invalid response: ${error.message}.`, { runId: id }))
    if (error instanceof HttpFailure)
      return temporary(networkError(error, new URL(engine.baseUrl).host).with({ runId: id }))
    throw error
  }
}

const temporary = (error: RushesError, retryAfter = 0): StatusOutcome => ({
  kind: 'error',
  error,
  retryAfterMs: retryAfter,
})

/** Follows redirects only within the same origin, so that the key is not sent elsewhere. */
async function follow(
  engine: Engine,
  method: 'GET' | 'POST',
  url: URL,
  signal: AbortSignal | undefined,
  redirects = 0,
): Promise<ServiceAnswer> {
  const response = await engine.send({ method, url, headers: { accept: 'application/json' }, signal })
  const answer = await readAnswer(response, engine.redact)
  if (answer.status < 300 || answer.status >= 400 || answer.location === undefined) return answer
  const target = URL.canParse(answer.location, url.href) ? new URL(answer.location, url) : undefined
  if (target?.origin !== url.origin) {
    const origin = target?.origin ?? 'an invalid URL'
    throw badResponse(
      `The service redirects the status request to another origin (${origin}). Redirects to other origins are not followed.`,
      { httpStatus: answer.status },
    )
  }
  if (redirects === MAX_REDIRECTS)
    throw badResponse(`The service redirects the status request more than ${MAX_REDIRECTS} times.`, {
      httpStatus: answer.status,
    })
  // As browsers do: a 303 names the result of the request.
  const next = answer.status === 303 ? 'GET' : method
  return follow(engine, next, target, signal, redirects + 1)
}

function outcomeOf(
  answer: ServiceAnswer,
  id: string,
  { failureStatuses, runIdField, clock }: Engine,
): StatusOutcome {
  const { status } = answer
  const invalid = (why: string) =>
    temporary(badResponse(`The service sent an invalid response: ${why}.`, { runId: id, httpStatus: status }))
  if (status >= 200 && status < 300) {
    const parsed = parseJson(answer.text)
    const run = parsed.ok ? parseRun(parsed.value, id, failureStatuses) : parsed
    const isOther = parsed.ok && !isOfRun(parsed.value, id, runIdField)
    if (run.ok && !isOther) return { kind: 'state', state: run.value }
    const wrong = isOther ? 'it is of another run' : run.ok ? '' : run.wrong
    return invalid(answer.unreadable ?? wrong)
  }
  const error = errorOfAnswer(answer).with({ runId: id })
  if (status >= 500 || isRateLimited(answer))
    return temporary(error, retryAfterMs(answer.retryAfter, clock.now()))
  return status >= 400 ? { kind: 'final', error } : invalid(`HTTP ${status}`)
}

/**
 * Resolves with the state of a run. Retries three times, then throws the last error. Retries for a run that succeeded
 * without URLs too: calls `onWithoutUrls` with the first such state, and resolves with the last one.
 */
export const fetchStatusWithRetry = (
  engine: Engine,
  id: string,
  signal?: AbortSignal,
  onWithoutUrls?: (state: RunState) => void,
): Promise<RunState> => withRetry(engine, () => fetchStatus(engine, id, signal), signal, onWithoutUrls)

/**
 * Cancels a run, and resolves with its state: of a run that had ended, the state at its end. Retries like
 * `fetchStatusWithRetry`. Throws with exit code 3 if the service cannot cancel runs.
 */
export function cancelWithRetry(engine: Engine, id: string, signal?: AbortSignal): Promise<RunState> {
  // A run that is canceled may refuse another cancel, so only its state is asked for again.
  let isAccepted = false
  const onAccepted = () => {
    isAccepted = true
  }
  const attempt = () =>
    isAccepted ? fetchStatus(engine, id, signal) : sendCancel(engine, id, signal, onAccepted)
  return withRetry(engine, attempt, signal)
}

const withRetry = (
  { clock }: Engine,
  attempt: () => Promise<StatusOutcome>,
  signal: AbortSignal | undefined,
  onWithoutUrls?: (state: RunState) => void,
): Promise<RunState> =>
  retry<StatusOutcome, RunState>({
    clock,
    signal,
    attempt,
    decide(outcome, number) {
      const isLast = number > RATE_LIMITED_WAITS_MS.length
      if (outcome.kind === 'state') {
        const { state } = outcome
        if (state.withoutUrls === undefined || isLast) return { done: state }
        if (number === 1) onWithoutUrls?.(state)
        return { retryInMs: stepOf(RATE_LIMITED_WAITS_MS, number) }
      }
      if (outcome.kind === 'final' || isLast) return { fail: outcome.error }
      return { retryInMs: Math.max(stepOf(RATE_LIMITED_WAITS_MS, number), outcome.retryAfterMs) }
    },
  })

export type ModelsOutcome =
  /** The documents are not checked. */
  | { readonly kind: 'list'; readonly models: readonly unknown[] }
  /** The service has no list. */
  | { readonly kind: 'none'; readonly reason: string }
  /** It is unknown whether the service has a list: a later request may get one. */
  | { readonly kind: 'failed'; readonly error: RushesError }

/** Statuses that say nothing about the list. The others, such as 404, mean that there is none. */
const isUndecided = (status: number): boolean => [401, 403, 408, 429].includes(status) || status >= 500

/** Sends one request. Rejects only with the signal's reason. */
export async function fetchModels(
  { baseUrl, send, limiter, clock, redact }: Engine,
  signal?: AbortSignal,
): Promise<ModelsOutcome> {
  const url = modelsUrl(baseUrl)
  try {
    const response = await send({ method: 'GET', url, headers: { accept: 'application/json' }, signal })
    const answer = await readAnswer(response, redact)
    const { status, text } = answer
    if (isRateLimited(answer)) limiter.holdBack(Math.max(1_000, retryAfterMs(answer.retryAfter, clock.now())))
    if (isUndecided(status)) return { kind: 'failed', error: errorOfAnswer(answer) }
    if (status !== 200) return { kind: 'none', reason: `it answered ${status}` }
    const parsed = parseJson(text)
    return parsed.ok && isObject(parsed.value) && Array.isArray(parsed.value.models)
      ? { kind: 'list', models: parsed.value.models }
      : { kind: 'none', reason: 'its response is not a list of models' }
  } catch (error) {
    if (signal?.aborted) throw signal.reason
    if (error instanceof BodyTooLarge) return { kind: 'none', reason: error.message }
    if (error instanceof HttpFailure) return { kind: 'failed', error: networkError(error, url.host) }
    if (error instanceof RushesError) return { kind: 'failed', error }
    throw error
  }
}
