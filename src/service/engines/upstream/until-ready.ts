/**
 * Sends a request of an engine until the server is ready: one that is loading or restarting refuses connections, or
 * answers 503. A request that a server may have accepted is not sent again.
 */
import { HttpFailure, type HttpResponse, type ServerRequest } from '../../../host/http.js'
import { receiveText } from '../../../host/receive-text.js'
import { type RetryDecision, retry, retryAfterMs, stepOf } from '../../../host/retry.js'
import { isObject } from '../../../protocol/parse.js'
import type { RenderJob } from '../engine.js'
import type { ServerParts } from '../read-engine.js'
import { type CleanText, errorTextOf, failedAnswer, isFinalAnswer, UpstreamError } from './upstream-error.js'

/** Time that a server has to become ready. */
const READY_LIMIT_MS = 600_000
const READY_STEPS_MS = [1_000, 2_000, 4_000, 8_000, 15_000]
const MAX_ERROR_BYTES = 65_536

/** No byte of the request was sent. A name that is not found may be a container that is starting. */
const NOT_READY =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTDOWN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/

type Attempt =
  | { readonly response: HttpResponse }
  | {
      readonly problem: UpstreamError
      readonly retryAfter?: string | undefined
      readonly isFinal: boolean
    }

export interface SendHooks {
  /** Further statuses of a server that is busy: the request is sent again, as after 429. */
  readonly busy?: readonly number[]
  /** Called before the request is sent, each time. With it, the request is not repeated after an answer 503. */
  readonly onSend?: RenderJob['onSend'] | undefined
  /** Called when the server has certainly not accepted the request, before it is sent again. */
  readonly onRefused?: RenderJob['onRefused'] | undefined
}

/** Less than a lease: no other worker takes the run over in this time. */
const MAX_SAVE_MS = 10_000

interface UntilReady {
  /** Resolves with any answer but 503, 429 and those of `busy`. `limitMs`: 0 for a single try. */
  untilReady(
    request: ServerRequest,
    signal: AbortSignal,
    limitMs?: number,
    hooks?: SendHooks,
  ): Promise<HttpResponse>
  errorOf(response: HttpResponse, signal: AbortSignal): Promise<UpstreamError>
}

export function createUntilReady(parts: ServerParts, clean: CleanText): UntilReady {
  const { clock } = parts

  async function untilReady(
    request: ServerRequest,
    signal: AbortSignal,
    limitMs = READY_LIMIT_MS,
    { onSend, onRefused, busy = [] }: SendHooks = {},
  ): Promise<HttpResponse> {
    const startedAtMs = clock.monotonic()
    const sendOnce = async (): Promise<Attempt> => {
      const startedSavingAtMs = clock.now()
      await onSend?.()
      // While this process was suspended, another worker may have taken the run over. The second call then throws.
      if (clock.now() - startedSavingAtMs > MAX_SAVE_MS) await onSend?.()
      // The answer may arrive after the abort, and tell that the run was not accepted.
      const sentSignal = request.signal ?? signal
      try {
        const response = await parts.fetch({ ...request, signal: sentSignal })
        if (![503, 429, ...busy].includes(response.status)) return { response }
        const problem = await errorOf(response, sentSignal)
        const retryAfter = response.header('retry-after') ?? retryAfterIn(problem.answer)
        const isFinal =
          isFinalAnswer(problem.answer, request) || (response.status === 503 && onSend !== undefined)
        return { problem, retryAfter, isFinal }
      } catch (error) {
        sentSignal.throwIfAborted()
        if (!(error instanceof HttpFailure)) throw error
        const { message, advice = '' } = error
        const text = clean(`The connection to the model's server failed: ${message}. ${advice}`.trim())
        return {
          problem: new UpstreamError(text, { cause: error }),
          isFinal: !mayRepeat(request, error),
        }
      }
    }
    const attempt = async (): Promise<Attempt> => {
      const outcome = await sendOnce()
      if ('problem' in outcome && !outcome.isFinal) await onRefused?.()
      return outcome
    }
    const decide = (outcome: Attempt, number: number): RetryDecision<HttpResponse> => {
      if ('response' in outcome) return { done: outcome.response }
      const { problem, retryAfter, isFinal } = outcome
      if (isFinal || limitMs === 0) return { fail: problem }
      const askedMs = retryAfterMs(retryAfter, clock.now())
      const waitMs = Math.max(stepOf(READY_STEPS_MS, number), askedMs)
      if (clock.monotonic() - startedAtMs + waitMs <= limitMs) return { retryInMs: waitMs }
      const waited = `The model's server was not ready within ${limitMs / 60_000} minutes.`
      return { fail: new UpstreamError(`${waited} ${problem.message}`, { status: problem.status }) }
    }
    return await retry({ attempt, decide, clock, signal })
  }

  async function errorOf(response: HttpResponse, signal: AbortSignal): Promise<UpstreamError> {
    const { text } = await receiveText(response, MAX_ERROR_BYTES)
    signal.throwIfAborted()
    return failedAnswer(response.status, response.header('content-type'), text, clean)
  }

  return { untilReady, errorOf }
}

/** Replicate writes the seconds into the body: `retry_after: 5`, or "Your rate limit resets in ~5s.". */
function retryAfterIn(answer: unknown): string | undefined {
  const { retry_after: seconds } = isObject(answer) ? answer : {}
  return typeof seconds === 'number' ? `${seconds}` : /~(\d+)\s?s\b/.exec(errorTextOf(answer) ?? '')?.[1]
}

function mayRepeat({ method }: ServerRequest, { sent, code = '', isInvalidHttp }: HttpFailure): boolean {
  return sent ? method === 'GET' && !isInvalidHttp : NOT_READY.test(code)
}
