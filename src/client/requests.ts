/**
 * Every API request passes through these wrappers of one function type; its answer is read here, and failures
 * become errors.
 */
import { messageOf, OWN_CODES, RushesError, type RushesErrorOptions } from '../errors.js'
import type { Clock } from '../host/clock.js'
import {
  type Fetch,
  HttpFailure,
  type HttpRequest,
  type HttpResponse,
  isLoopback,
  receiveText,
} from '../host/http.js'
import { parseErrorBody } from '../protocol/parse.js'
import { type Problem, problemByStatus, problemOf } from '../protocol/problems.js'
import { printable, shortened } from '../protocol/text.js'

export interface RateLimiter {
  acquire(purpose: 'create' | 'status', signal?: AbortSignal): Promise<{ settle(): void }>
  holdBack(ms: number): void
  load(): number
}

export type Trace = (line: string) => void

type Wrapper = (send: Fetch) => Fetch

/** The last wrapper is the outermost and runs first. */
export const pipe = (fetch: Fetch, ...wrappers: readonly Wrapper[]): Fetch =>
  wrappers.reduce((send, wrap) => wrap(send), fetch)

/** Errors of a caller's `Fetch` other than `HttpFailure`: the request may have been sent. */
export const withHttpFailures: Wrapper = (send) => async (request) => {
  try {
    return await send(request)
  } catch (error) {
    if (request.signal?.aborted || error instanceof HttpFailure || error instanceof RushesError) throw error
    throw new HttpFailure(messageOf(error), { sent: true, cause: error })
  }
}

/** The key goes to the API's own origin alone. */
export const withKey =
  (apiKey: string, origin: string): Wrapper =>
  (send) =>
  (request) =>
    request.url.origin === origin
      ? send({ ...request, headers: { ...request.headers, authorization: `Bearer ${apiKey}` } })
      : send(request)

/**
 * A slot of the limit is held from the grant until the head of the answer; `beforeSend` runs between the grant and
 * the request.
 */
export const withLimit =
  (limiter: RateLimiter, purpose: 'create' | 'status', beforeSend?: () => void | Promise<void>): Wrapper =>
  (send) =>
  async (request) => {
    const slot = await limiter.acquire(purpose, request.signal)
    try {
      await beforeSend?.()
      return await send(request)
    } finally {
      slot.settle()
    }
  }

/** One line out and one line back; the key is added further in and never seen here. */
export const withTrace =
  (trace: Trace | undefined, clock: Pick<Clock, 'monotonic'>): Wrapper =>
  (send) =>
  async (request) => {
    if (trace === undefined) return send(request)
    trace(`> ${describe(request)}`)
    const started = clock.monotonic()
    const took = () => `${Math.round(clock.monotonic() - started)} ms`
    try {
      const response = await send(request)
      trace(`< ${response.status} ${request.url.pathname} (${took()})`)
      return response
    } catch (error) {
      trace(`! ${messageOf(error)} ${request.url.pathname} (${took()})`)
      throw error
    }
  }

const describe = ({ method, url, body }: HttpRequest): string =>
  `${method} ${url.origin}${url.pathname}${body === undefined ? '' : ` (${body.byteLength} bytes)`}`

/** Larger answers are errors. The interface has none that comes near. */
export const MAX_ANSWER_BYTES = 8 * 1024 * 1024

export interface ServiceAnswer {
  readonly status: number
  readonly text: string
  readonly location: string | undefined
  readonly retryAfter: string | undefined
}

/**
 * Reads an answer as far as it arrives; `failure` is why its body is not whole. `redact` removes secrets from it:
 * some services echo the request in their errors, and errors end up in logs.
 */
export async function receiveAnswer(
  response: HttpResponse,
  redact: Redact = (text) => text,
): Promise<{ readonly answer: ServiceAnswer; readonly failure?: unknown }> {
  const location = response.header('location')
  const { text, failure } = await receiveText(response, MAX_ANSWER_BYTES)
  return {
    failure,
    answer: {
      status: response.status,
      location: location === undefined ? undefined : redact(location),
      retryAfter: response.header('retry-after'),
      text: redact(text),
    },
  }
}

/** A whole answer. Throws `BodyTooLarge`, `HttpFailure` or the reason of the request's signal. */
export async function readAnswer(response: HttpResponse, redact?: Redact): Promise<ServiceAnswer> {
  const { answer, failure } = await receiveAnswer(response, redact)
  if (failure !== undefined) throw failure
  return answer
}

type Redact = (text: string) => string

/**
 * The error of an answer, by the table of codes. Missing and unknown codes fall back to the status; a 404 means a
 * missing run only when its code says so. The codes of `rushes` itself are not accepted from a service: a refusal
 * called `submission_unknown` would be kept as a run.
 */
export function errorOfAnswer(answer: ServiceAnswer): RushesError {
  const { code, message } = parseErrorBody(answer.text)
  const known = problemOf(code)
  const row = problemOfAnswer(answer) ?? problemByStatus(answer.status)
  const reason = printable(message ?? '') || known?.cause || bodyText(answer)
  const word = printable(code ?? '')
  return new RushesError(
    word === '' || Object.hasOwn(OWN_CODES, word) ? 'service_error' : word,
    `The service answered ${answer.status}: ${shortened(reason)}`,
    {
      hint: row.hint,
      httpStatus: answer.status,
      exitCode: row.exit,
    },
  )
}

/** The row of the table for the answer's code, where the HTTP status fits it. */
function problemOfAnswer({ status, text }: ServiceAnswer): Problem | undefined {
  const problem = problemOf(parseErrorBody(text).code)
  return problem?.status === status ? problem : undefined
}

/** A 429 that passes with time; one whose code says that it does not (an exhausted quota) is a refusal. */
export const isRateLimited = (answer: ServiceAnswer): boolean =>
  answer.status === 429 && (problemOfAnswer(answer)?.retryable ?? true)

const bodyText = ({ text }: ServiceAnswer): string => {
  const body = shortened(printable(text).trim(), 120)
  return body === '' ? 'no message' : body
}

export const badResponse = (what: string, options: RushesErrorOptions = {}): RushesError =>
  new RushesError('bad_response', what, {
    hint: 'Check the service URL. Add --debug to see the requests and responses.',
    ...options,
  })

/** Bytes that are not HTTP are an answer too, from something that is not the service. */
export const networkError = (failure: HttpFailure, host: string): RushesError =>
  failure.isInvalidHttp
    ? new RushesError('bad_response', `Invalid response from ${host}: ${printable(failure.message)}.`, {
        hint: [
          'Check the host and the port of the service URL: another kind of server may be running there.',
          'For a server with TLS, use https.',
        ].join(' '),
        cause: failure,
      })
    : new RushesError('network', `Could not reach ${host}: ${printable(failure.message)}.`, {
        hint: isLoopback(new URL(`http://${host}`).hostname)
          ? 'Check the service URL, and that the service is running.'
          : 'Check the service URL and the network (the proxy is read from HTTPS_PROXY), then try again.',
        cause: failure,
      })
