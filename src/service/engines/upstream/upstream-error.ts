/** Failures of a model's server, as the person who created the run reads them. */
import type { ServerRequest } from '../../../host/http.js'
import { isObject, parseJson, textOfDetail } from '../../../protocol/parse.js'
import { createRedact } from '../../../protocol/redact.js'
import { onOneLine, shortened, withoutControls } from '../../../protocol/text.js'

const MAX_TEXT_CHARACTERS = 1_000

/**
 * The run fails with this message. It never names the address of the server, which may be internal, and never contains
 * the key.
 */
export class UpstreamError extends Error {
  override readonly name: string = 'UpstreamError'
  /** HTTP status of the answer; undefined without an answer. */
  readonly status: number | undefined
  /** The answer, parsed as JSON; `''` for an empty one, and undefined for any other. */
  readonly answer: unknown

  constructor(
    message: string,
    options: { status?: number | undefined; answer?: unknown; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause })
    this.status = options.status
    this.answer = options.answer
  }
}

/** The connection broke in the middle of an answer. */
export class BrokenTransfer extends UpstreamError {
  override readonly name = 'BrokenTransfer'
}

/** An answer beyond what a result needs. Another try would get the same. */
export class UnusableAnswer extends UpstreamError {
  override readonly name = 'UnusableAnswer'

  constructor(status: number) {
    super("The model's server sent a larger response than expected.", { status })
  }
}

/**
 * Whether a request that only asks may succeed when it is repeated. A proxy answers with 5xx, 408 or 425, or with 200 and
 * a page. A server that answered 503 was given its time.
 */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof UpstreamError) || error instanceof UnusableAnswer) return false
  const { status = 0 } = error
  return (
    error instanceof BrokenTransfer || [200, 408, 425].includes(status) || (status >= 500 && status !== 503)
  )
}

/** Whether the account of the key was refused, and not the run. */
export const isRefusedKey = ({ status = 0 }: UpstreamError): boolean => [401, 402, 403].includes(status)

/** Whether no server answered, or one that was not ready in its time. */
export const isUnreachable = ({ status = 503 }: UpstreamError): boolean => status === 503 || status === 429

/** Whether an answer of status 503 or 429 does not come from a server that is loading or busy. */
export function isFinalAnswer(answer: unknown, { method, url }: ServerRequest): boolean {
  if (!isObject(answer)) return false
  const { id, status, error } = answer
  // The account of a paid service has no credit left.
  if (isObject(error) && [error.code, error.type].includes('insufficient_quota')) return true
  // The status of a job's error, with that job.
  return (
    method === 'GET' && typeof status === 'string' && url.pathname.endsWith(`/${encodeURIComponent(`${id}`)}`)
  )
}

/** Removes the key, the server's address and control characters from a text of the server, and shortens it. */
export type CleanText = (text: string) => string

export function createCleanText(url: URL, secrets: readonly string[]): CleanText {
  const redactions = secrets.map(createRedact)
  return (text) => {
    // Cut first, but not at the final length: a secret across the cut must be found as a whole.
    let clean = withoutControls(text.slice(0, 8 * MAX_TEXT_CHARACTERS))
    for (const redact of redactions) clean = redact(clean)
    // Last the name without its port, unless it could be an ordinary word.
    const addresses = [url.origin, url.host, ...(/[.:]/.test(url.hostname) ? [url.hostname] : [])]
    for (const address of addresses) clean = clean.replaceAll(address, '[server]')
    return shortened(onOneLine(clean), MAX_TEXT_CHARACTERS)
  }
}

/**
 * Returns the error text in an answer, in the forms of the known servers: `{"error":{"message"}}`, `{"error":"text"}`,
 * `{"error":"server_error","message"}`, `{"error":"OutOfMemoryError","errors":"text"}`, `{"detail":"text"}`,
 * `{"detail":[{"loc","msg"}]}`, `{"message"}`. Undefined if it has none.
 */
export function errorTextOf(answer: unknown): string | undefined {
  if (!isObject(answer)) return undefined
  const { error, message, detail, errors } = answer
  const inner = isObject(error) ? error.message : undefined
  const candidates = [inner, message, textOfDetail(detail), errors, error]
  return candidates.find((each): each is string => typeof each === 'string' && each.trim() !== '')
}

/** There is nothing to cancel or to fetch: the server has refused the job, or the job has ended without a result. */
export class JobEnded extends UpstreamError {}

/** The server accepted the request, but its answer does not name the job. */
export class NoJobId extends UpstreamError {
  constructor(message = "The model's server returned no id for the job, so its result cannot be fetched.") {
    super(message, { status: 200 })
  }
}

/** The error for an answer of status 200 that has no result. */
export function missingResult(answer: unknown, clean: CleanText): JobEnded {
  const text = errorTextOf(answer)
  return new JobEnded(
    text === undefined
      ? "The model's server answered without a result."
      : `The model's server failed: ${clean(text)}`,
  )
}

/** Describes an answer with an error status. `body`: the beginning of the answer. */
export function failedAnswer(
  status: number,
  contentType: string | undefined,
  body: string,
  clean: CleanText,
): UpstreamError {
  const json = parseJson(body)
  const answer = json.ok ? json.value : body.trim() === '' ? '' : undefined
  // A page of a proxy in front of the server says nothing that helps.
  const isPage = /^\s*</.test(body) || /html/i.test(contentType ?? '')
  const text = clean(errorTextOf(answer) ?? (answer === undefined && !isPage ? body : ''))
  const found = text !== '' ? `: ${text}` : isPage ? ' with a web page.' : ' without a message.'
  return new UpstreamError(`The model's server answered ${status}${found}`, { status, answer })
}
