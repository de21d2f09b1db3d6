/** Asks the service for its list of models. The list is an extension: another service answers in any other way. */
import { RushesError } from '../errors.js'
import { HttpFailure } from '../host/http.js'
import { BodyTooLarge } from '../host/receive-text.js'
import { retryAfterMs } from '../host/retry.js'
import { modelsUrl } from '../protocol/id.js'
import { isObject, parseJson } from '../protocol/parse.js'
import { errorOfAnswer, isRateLimited, networkError, type RequestParts, readAnswer } from './requests.js'

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
  { baseUrl, send, limiter, clock, redact = (text) => text }: RequestParts,
  signal?: AbortSignal,
): Promise<ModelsOutcome> {
  const url = modelsUrl(baseUrl)
  try {
    const response = await send({ method: 'GET', url, headers: { accept: 'application/json' }, signal })
    const answer = await readAnswer(response)
    const { status, text } = answer
    if (isRateLimited(answer)) limiter.holdBack(Math.max(1_000, retryAfterMs(answer.retryAfter, clock.now())))
    if (isUndecided(status))
      return { kind: 'failed', error: errorOfAnswer({ ...answer, text: redact(text) }) }
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
