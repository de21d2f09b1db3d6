/**
 * Wrappers of `Fetch` through which every API request passes. Also reads responses, and converts failures to errors.
 */
import { EXIT, messageOf, OWN_CODES, RushesError, type RushesErrorOptions } from '../errors.js'
import type { Clock } from '../host/clock.js'
import { type Fetch, HttpFailure, type HttpRequest, type HttpResponse, isLoopback } from '../host/http.js'
import { receiveText } from '../host/response-body.js'
import { parseErrorBody } from '../protocol/parse.js'
import { type Problem, problemByStatus, problemOf } from '../protocol/problems.js'
import { printable, shortened } from '../protocol/text.js'

export interface RateLimiter {
  /** Slots that status requests leave free. */
  spareForCreates: number
  acquire(purpose: 'create' | 'status', signal?: AbortSignal): Promise<{ settle(): void }>
  holdBack(ms: number): void
  /** Used share of the limit, 0 to 1. */
  load(): number
}

/** What every request of a client uses. */
export interface Engine {
  readonly baseUrl: string
  readonly send: Fetch
  readonly limiter: RateLimiter
  readonly clock: Clock
  /** Removes the API key: some services include the request in their error messages, which end up in logs. */
  redact(text: string): string
  readonly failureStatuses: readonly string[]
  readonly runIdField: string | undefined
}

export type Trace = (line: string) => void

type Wrapper = (send: Fetch) => Fetch

/** Applies wrappers to `fetch`. The last wrapper is the outermost and runs first. */
export const pipe = (fetch: Fetch, ...wrappers: readonly Wrapper[]): Fetch =>
  wrappers.reduce((send, wrap) => wrap(send), fetch)

/** Converts other errors of a caller's `Fetch` to `HttpFailure`. The request may have been sent. */
export const withHttpFailures: Wrapper = (send) => async (request) => {
  try {
    return await send(request)
  } catch (error) {
    if (request.signal?.aborted || error instanceof HttpFailure || error instanceof RushesError) throw error
    throw new HttpFailure(messageOf(error), { sent: true, cause: error })
  }
}

/** Adds the API key, but only to requests to the origin of the API. */
export const withKey =
  (apiKey: string, origin: string): Wrapper =>
  (send) =>
  (request) =>
    request.url.origin === origin
      ? send({ ...request, headers: { ...request.headers, authorization: `Bearer ${apiKey}` } })
      : send(request)

/**
 * Holds a slot of the rate limit from the grant until the head of the response. `beforeSend` runs between the grant and
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

/** Traces each request and each response in one line. An inner wrapper adds the key, so the trace never contains it. */
export const withTrace =
  (trace: Trace | undefined, clock: Clock): Wrapper =>
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

/** Maximum size of a response; a larger one is an error. All responses of the interface are much smaller. */
export const MAX_ANSWER_BYTES = 8 * 1024 * 1024

export interface ServiceAnswer {
  readonly status: number
  /** The body as text. Bytes that are not text are replaced, so that the rest can still be read. */
  readonly text: string
  /** The body as base64, if it is not text. To be kept in place of `text`. */
  readonly base64?: string | undefined
  /** Why the body cannot be read, such as an unknown encoding. */
  readonly unreadable?: string | undefined
  readonly location: string | undefined
  readonly retryAfter: string | undefined
}

/** Reads a response, as much as arrives. `failure`: why the body is not complete. */
export async function receiveAnswer(
  response: HttpResponse,
  redact: Engine['redact'],
): Promise<{ readonly answer: ServiceAnswer; readonly failure?: unknown }> {
  const location = response.header('location')
  const { text, binary, undecodable, failure } = await receiveText(response, MAX_ANSWER_BYTES)
  return {
    failure,
    answer: {
      status: response.status,
      location: location === undefined ? undefined : redact(location),
      retryAfter: response.header('retry-after'),
      text: redact(text),
      // The bytes themselves are redacted, because the key cannot be found in base64.
      base64:
        binary && Buffer.from(redact(Buffer.from(binary).toString('latin1')), 'latin1').toString('base64'),
      unreadable: undecodable,
    },
  }
}

/** Returns the whole body in a form that can be printed and stored. */
export const wholeBody = ({ text, base64 }: ServiceAnswer): string =>
  base64 === undefined ? text : `base64:${base64}`

/** Reads a complete response. Throws `BodyTooLarge`, `HttpFailure` or the reason of the request's signal. */
export async function readAnswer(response: HttpResponse, redact: Engine['redact']): Promise<ServiceAnswer> {
  const { answer, failure } = await receiveAnswer(response, redact)
  if (failure !== undefined) throw failure
  return answer
}

/**
 * Returns the error for a response, by the table of codes. Without a known code, the HTTP status decides. A 404 means a
 * missing run only if its code says so. Codes that `rushes` itself uses are not accepted from a service: a refusal with
 * the code `submission_unknown` would be stored as a run.
 */
export function errorOfAnswer(answer: ServiceAnswer): RushesError {
  const { code, message } = parseErrorBody(answer.text)
  const known = problemOf(code)
  const row = problemOfAnswer(answer) ?? problemByStatus(answer.status)
  const reason = printable(message ?? '') || known?.cause || bodyText(answer)
  const printableCode = printable(code ?? '')
  return new RushesError(
    printableCode === '' || Object.hasOwn(OWN_CODES, printableCode) ? 'service_error' : printableCode,
    `The service answered ${answer.status}: ${shortened(reason)}`,
    {
      hint: row.hint,
      httpStatus: answer.status,
      exitCode: row.exit,
    },
  )
}

/** Returns the row of the table for the code of the response, if the HTTP status matches. */
function problemOfAnswer({ status, text }: ServiceAnswer): Problem | undefined {
  const problem = problemOf(parseErrorBody(text).code)
  return problem?.status === status ? problem : undefined
}

/**
 * Returns whether a response is a 429 that ends with time. A 429 whose code means a permanent limit (an exhausted
 * quota) is a refusal.
 */
export const isRateLimited = (answer: ServiceAnswer): boolean =>
  answer.status === 429 && problemOfAnswer(answer)?.exit !== EXIT.account

const bodyText = ({ text, unreadable }: ServiceAnswer): string => {
  if (unreadable !== undefined) return unreadable
  const body = shortened(text.trim(), 120)
  return body === '' ? 'no message' : body
}

export const badResponse = (what: string, options: RushesErrorOptions = {}): RushesError =>
  new RushesError('bad_response', what, {
    hint: 'Check the service URL. Add --debug to see the requests and responses.',
    ...options,
  })

/**
 * Returns the error for a failed request. Bytes that are not HTTP count as an invalid response of another kind of
 * server.
 */
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
        hint:
          failure.advice ??
          (isLoopback(new URL(`http://${host}`).hostname)
            ? 'Check the service URL, and that the service is running.'
            : 'Check the service URL and the network (the proxy is read from HTTPS_PROXY), then try again.'),
        cause: failure,
      })
