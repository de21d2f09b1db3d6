/** Turns error answers into `RushesError`s, by the table of codes, else by the HTTP status. */
import { OWN_CODES, RushesError, type RushesErrorOptions } from '../errors.js'
import { type HttpFailure, type HttpResponse, isLoopback, receiveText } from '../host/http.js'
import { parseErrorBody } from '../protocol/parse.js'
import { type Problem, problemByStatus, problemOf } from '../protocol/problems.js'
import { printable, shortened } from '../protocol/text.js'

/** Larger answers are errors. The interface has none that comes near. */
export const MAX_ANSWER_BYTES = 8 * 1024 * 1024

export interface Answer {
  readonly status: number
  readonly text: string
  readonly location: string | undefined
  readonly retryAfter: string | undefined
}

export interface ReceivedAnswer {
  readonly answer: Answer
  /** Why the body is not whole. */
  readonly failure?: unknown
}

/**
 * Reads an answer as far as it arrives. `redact` removes secrets from it: some services echo the request in their errors, and
 * errors end up in logs.
 */
export async function receiveAnswer(
  response: HttpResponse,
  redact: Redact = (text) => text,
): Promise<ReceivedAnswer> {
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
export async function readAnswer(response: HttpResponse, redact?: Redact): Promise<Answer> {
  const { answer, failure } = await receiveAnswer(response, redact)
  if (failure !== undefined) throw failure
  return answer
}

export type Redact = (text: string) => string

/**
 * Missing and unknown codes fall back to the status; a 404 means a missing run only when its code says so. The codes of
 * `rushes` itself are not taken over from a service: a refusal called `submission_unknown` would be kept as a run.
 */
export function errorOfAnswer(answer: Answer): RushesError {
  const { code, message } = parseErrorBody(answer.text)
  const known = problemOf(code)
  const row = problemOfAnswer(answer) ?? problemByStatus(answer.status)
  const said = printable(message ?? '') || known?.cause || saidOtherwise(answer)
  const word = printable(code ?? '')
  return new RushesError(
    word === '' || Object.hasOwn(OWN_CODES, word) ? 'service_error' : word,
    `The service answered ${answer.status}: ${shortened(said)}`,
    {
      hint: row.hint,
      httpStatus: answer.status,
      exitCode: row.exit,
    },
  )
}

/** The row of the table for the answer's code, where the HTTP status fits it. */
function problemOfAnswer({ status, text }: Answer): Problem | undefined {
  const problem = problemOf(parseErrorBody(text).code)
  return problem?.status === status ? problem : undefined
}

/** A 429 that passes with time; one whose code says that it does not (an exhausted quota) is a refusal. */
export const isRateLimited = (answer: Answer): boolean =>
  answer.status === 429 && (problemOfAnswer(answer)?.retryable ?? true)

const saidOtherwise = ({ text }: Answer): string => {
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
        hint: 'Check the host and the port of the service URL: another kind of server may be running there. For a server with TLS, use https.',
        cause: failure,
      })
    : new RushesError('network', `Could not reach ${host}: ${printable(failure.message)}.`, {
        hint: isLoopback(new URL(`http://${host}`).hostname)
          ? 'Check the service URL, and that the service is running.'
          : 'Check the service URL and the network (the proxy is read from HTTPS_PROXY), then try again.',
        cause: failure,
      })
