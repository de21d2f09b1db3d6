/**
 * Decides whether a create may be sent again. A run costs money from the moment it is accepted, so a create is repeated
 * only if the service definitely did not accept it. Each outcome has a test in test/client/create-outcome.test.ts.
 */
import { messageOf, RushesError } from '../errors.js'
import type { HttpFailure } from '../host/http.js'
import { type RetryDecision, retryAfterMs, stepOf } from '../host/retry.js'
import { findRunId } from '../protocol/id.js'
import { RATE_LIMITED_WAITS_MS } from '../protocol/limits.js'
import { parseErrorBody, parseJson } from '../protocol/parse.js'
import { REDACTED } from '../protocol/redact.js'
import { printable, shortened } from '../protocol/text.js'
import { formatBytes } from '../protocol/units.js'
import {
  badResponse,
  errorOfAnswer,
  isRateLimited,
  networkError,
  type ServiceAnswer,
  wholeBody,
} from './requests.js'

/** Waits before two more tries, if no connection was made. */
const UNCONNECTED_WAITS_MS = [1_000, 2_000] as const

/** The outcome of sending a create once. */
export type CreateOutcome =
  | { readonly kind: 'accepted'; readonly id: string; readonly body: unknown }
  /**
   * A 201 without a run id: the run is paid for, but its status cannot be requested. `failure`: why the body is
   * incomplete.
   */
  | {
      readonly kind: 'nameless'
      readonly text: string
      readonly unreadable?: string | undefined
      readonly failure?: unknown
    }
  /** No byte was sent, so nothing was accepted. */
  | { readonly kind: 'unconnected'; readonly failure: HttpFailure }
  /** The service's rate limit refused it. */
  | { readonly kind: 'rate-limited'; readonly answer: ServiceAnswer }
  | { readonly kind: 'refused'; readonly answer: ServiceAnswer }
  | { readonly kind: 'redirected'; readonly answer: ServiceAnswer }
  /** The create was sent, but it is unknown whether the service accepted it. */
  | {
      readonly kind: 'unknown'
      readonly why: string
      readonly httpStatus?: number | undefined
      /** The received part of the body. */
      readonly text?: string | undefined
      readonly cause?: unknown
    }

interface AnswerReading {
  readonly answer: ServiceAnswer
  readonly runIdField?: string | undefined
  /** Values that arrived completely, if the body is incomplete. */
  readonly tornBody?: unknown
  /** Why the body is incomplete. */
  readonly failure?: unknown
}

/**
 * Returns the outcome for a response. A 4xx status is enough to show a refusal, except 408; a 201 needs an id to count as
 * accepted.
 */
export function outcomeOfAnswer({ answer, runIdField, tornBody, failure }: AnswerReading): CreateOutcome {
  const { status, text, location } = answer
  if (status === 201) {
    const parsed = parseJson(text)
    const id = findRunId({ body: parsed.ok ? parsed.value : tornBody, location, runIdField })
    // A redacted id does not identify the run: the user must look it up.
    return id === undefined || id.includes(REDACTED)
      ? { kind: 'nameless', text: wholeBody(answer), unreadable: answer.unreadable, failure }
      : { kind: 'accepted', id, body: parsed.ok ? parsed.value : null }
  }
  // A 303 names the result of a request that was carried out, so it is no refusal.
  if (status >= 300 && status < 400 && status !== 303) return { kind: 'redirected', answer }
  if (isRateLimited(answer)) return { kind: 'rate-limited', answer }
  // A proxy that answers 408 waited too long for the service, which may have accepted the run.
  if (status >= 400 && status < 500 && status !== 408) return { kind: 'refused', answer }
  const message = printable(parseErrorBody(text).message ?? '')
  const target = location === undefined ? '' : ` to ${shortened(printable(location), 120)}`
  const answered = `${status}${target}${message === '' ? '' : ` (${shortened(message, 120)})`}`
  return {
    kind: 'unknown',
    why: `the service answered ${answered}, which does not show whether it accepted the run`,
    httpStatus: status,
    text: wholeBody(answer),
    cause: failure,
  }
}

/** A run that exists, because the service answered 201. */
export interface Accepted {
  readonly id: string
  /** Parsed body of the 201. Null if it is not JSON. */
  readonly body: unknown
}

interface CreateContext {
  readonly host: string
  readonly nowMs: number
  /** Size of the request body. */
  readonly bodyBytes: number
}

export const SMALLER_BODY = 'Use smaller reference images, or http(s) URLs.'

/** Decides what to do next. `outcomes`: outcomes of all attempts, the latest last. */
export function decideCreate(
  outcomes: readonly CreateOutcome[],
  { host, nowMs, bodyBytes }: CreateContext,
): RetryDecision<Accepted> {
  const outcome = outcomes.at(-1)
  if (outcome === undefined) throw new Error('decideCreate needs an outcome')
  const times = outcomes.filter(({ kind }) => kind === outcome.kind).length
  switch (outcome.kind) {
    case 'accepted':
      return { done: { id: outcome.id, body: outcome.body } }
    case 'unconnected':
      if (times <= UNCONNECTED_WAITS_MS.length) return { retryInMs: stepOf(UNCONNECTED_WAITS_MS, times) }
      return { fail: notCreated(networkError(outcome.failure, host)) }
    case 'rate-limited':
      if (times <= RATE_LIMITED_WAITS_MS.length)
        return {
          retryInMs: Math.max(
            stepOf(RATE_LIMITED_WAITS_MS, times),
            retryAfterMs(outcome.answer.retryAfter, nowMs),
          ),
        }
      return { fail: notCreated(errorOfAnswer(outcome.answer)) }
    case 'refused':
      return { fail: notCreated(refusal(outcome.answer, bodyBytes)) }
    case 'redirected':
      return { fail: redirected(outcome.answer, host) }
    case 'nameless':
      return { fail: nameless(outcome) }
    case 'unknown':
      return { fail: outcomeUnknown(outcome.why, { httpStatus: outcome.httpStatus, cause: outcome.cause }) }
  }
}

function refusal(answer: ServiceAnswer, bodyBytes: number): RushesError {
  const error = errorOfAnswer(answer)
  if (answer.status !== 413) return error
  const size = formatBytes(bodyBytes)
  return error.with({
    consequence: `The request body has ${size}, which is too large for this service or a proxy before it.`,
    hint: SMALLER_BODY,
  })
}

/** Adds what the error means for this run. Other runs of the same command may exist. */
const notCreated = (error: RushesError): RushesError =>
  error.with({ consequence: 'The run was not created and nothing was paid for it.' })

/**
 * Returns the error for a redirect. A create does not follow redirects, because they would send the prompt to another
 * address.
 */
function redirected({ status, location }: ServiceAnswer, host: string): RushesError {
  const target = location === undefined ? '' : ` to ${shortened(printable(location), 120)}`
  return badResponse(
    `${host} answered the create with a redirect (${status}${target}). Redirects are not followed. The run was not created.`,
    {
      httpStatus: status,
      hint: 'Use the URL that it redirects to, with --base-url, RUSHES_BASE_URL or `rushes config set baseUrl <url>`.',
    },
  )
}

export const outcomeUnknown = (
  why: string,
  options: { httpStatus?: number | undefined; cause?: unknown } = {},
): RushesError =>
  new RushesError(
    'submission_unknown',
    `The create request was sent, but ${why}. A run may exist and cost money.`,
    {
      hint: 'Check the runs of your account before you send it again.',
      ...options,
    },
  )

function nameless({ text, unreadable, failure }: Extract<CreateOutcome, { kind: 'nameless' }>): RushesError {
  const [problem, what] =
    failure === undefined
      ? [unreadable ?? 'the response contains no run id', 'Response']
      : [`the response broke off before the run id (${messageOf(failure)})`, 'Received']
  const received = printable(text) || '(empty)'
  return new RushesError(
    'submission_unknown',
    `The service accepted the run (201), but ${problem}. The run exists and costs money. ${what}: ${received}`,
    {
      hint: [
        'Find the id in the response or in your account, then run `rushes wait <id>`.',
        'If the id is in another field, run `rushes config set runIdField <path.to.id>`.',
      ].join(' '),
      httpStatus: 201,
      cause: failure,
    },
  )
}
