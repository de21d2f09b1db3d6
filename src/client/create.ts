/**
 * Creates a run. A run costs money from the moment it is accepted, so a create is sent again only if the service definitely
 * did not accept it. Each outcome has a test in test/client/create-outcome.test.ts.
 */
import { messageOf, RushesError, usageError } from '../errors.js'
import { HttpFailure, type HttpResponse } from '../host/http.js'
import { BodyTooLarge } from '../host/response-body.js'
import { type RetryDecision, retry, retryAfterMs, stepOf } from '../host/retry.js'
import { createRunUrl, findRunId } from '../protocol/id.js'
import { readTornJson, writeJson } from '../protocol/json.js'
import { MAX_BODY_BYTES, RATE_LIMITED_WAITS_MS } from '../protocol/limits.js'
import { isModelName, type ModelInput } from '../protocol/models.js'
import { isObject, parseErrorBody, parseJson } from '../protocol/parse.js'
import { REDACTED } from '../protocol/redact.js'
import { printable, shortened } from '../protocol/text.js'
import { formatBytes } from '../protocol/units.js'
import {
  badResponse,
  type Engine,
  errorOfAnswer,
  isRateLimited,
  networkError,
  receiveAnswer,
  type ServiceAnswer,
  wholeBody,
} from './requests.js'

const SMALLER_BODY = 'Use smaller reference images, or http(s) URLs.'

/** Body of a create. */
export interface CreateBody {
  /** Identifier that the service publishes, in the form `<provider>/<name>`. */
  readonly model: string
  readonly input: ModelInput
}

export interface CreateHooks {
  readonly signal?: AbortSignal | undefined
  /** Called after the rate limiter's grant, directly before the bytes are sent; once per attempt. */
  beforeSend?(): void | Promise<void>
  /** Called with the outcome of each attempt, as soon as it is known. */
  onOutcome?(outcome: CreateOutcome): void
  /** Called when the service did not accept the create and it will be sent again. */
  onRetry?(waitMs: number, why: 'rate-limited' | 'unconnected'): void
}

/**
 * Encodes the body of a create. Encode it only once, so that the checked bytes are the bytes that are sent. Throws
 * `usage` if the body cannot be sent.
 */
export function encodeCreate(body: CreateBody): Uint8Array {
  const { model, input } = (isObject(body) ? body : {}) as Partial<CreateBody>
  if (typeof model !== 'string' || !isModelName(model))
    throw usageError(
      `"${typeof model === 'string' ? shortened(model) : typeof model}" is not a valid model identifier.`,
      'Use the form <provider>/<name>, as published by the service.',
    )
  if (!isObject(input)) throw usageError('The input of the run is not an object. Nothing was sent.')
  const bytes = Buffer.from(jsonOf({ model, input }))
  if (bytes.byteLength > MAX_BODY_BYTES) throw tooLarge(`The request body has ${bytes.byteLength} bytes`)
  return bytes
}

function jsonOf(body: CreateBody): string {
  try {
    return writeJson(body, {
      replace(value) {
        // `JSON.stringify` would write it as null.
        if (typeof value === 'number' && !Number.isFinite(value))
          throw new Error(`${value} is not a number of JSON`)
        return value
      },
    })
  } catch (error) {
    // JSON has no circular references.
    const why = shortened(messageOf(error))
    throw usageError(`The input of the run cannot be written as JSON: ${why}. Nothing was sent.`)
  }
}

export const tooLarge = (what: string): RushesError =>
  usageError(`${what}; the limit for a request body is ${MAX_BODY_BYTES / 1024 / 1024} MiB.`, SMALLER_BODY)

/** Resolves with the accepted run. Rejects with a `RushesError`, or with the signal's reason. */
export function createRun(engine: Engine, body: Uint8Array, hooks: CreateHooks): Promise<Accepted> {
  const outcomes: CreateOutcome[] = []
  const { signal } = hooks
  return retry<CreateOutcome, Accepted>({
    clock: engine.clock,
    signal,
    attempt: () => sendOnce(engine, body, signal),
    decide: (outcome) => {
      outcomes.push(outcome)
      hooks.onOutcome?.(outcome)
      return decideCreate(outcomes, engine, body.byteLength)
    },
    onRetry: ({ kind }, waitMs) => {
      // The rate limit belongs to the key, so all other requests with the key wait too.
      if (kind === 'rate-limited') engine.limiter.holdBack(waitMs)
      if (kind === 'rate-limited' || kind === 'unconnected') hooks.onRetry?.(waitMs, kind)
    },
  })
}

async function sendOnce(engine: Engine, body: Uint8Array, signal?: AbortSignal): Promise<CreateOutcome> {
  let response: HttpResponse
  try {
    response = await engine.send({
      method: 'POST',
      url: createRunUrl(engine.baseUrl),
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body,
      signal,
      fresh: true,
    })
  } catch (error) {
    if (!(error instanceof HttpFailure)) throw error
    if (!error.sent) return { kind: 'unconnected', failure: error }
    const why = error.isInvalidHttp ? error.message : `no response came (${error.message})`
    return { kind: 'unknown', why, cause: error }
  }
  const { answer, failure } = await receiveAnswer(response, engine.redact)
  const outcome = outcomeOfAnswer(answer, engine.runIdField, failure)
  // Throw the reason of an abort, unless the run is already known.
  if (failure === undefined || outcome.kind === 'accepted' || isBroken(failure) || !signal?.aborted)
    return outcome
  throw failure
}

const isBroken = (failure: unknown): boolean =>
  failure instanceof HttpFailure || failure instanceof BodyTooLarge

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

/**
 * Returns the outcome for a response. A 4xx status is enough to show a refusal, except 408; a 201 needs an id to count as
 * accepted. `failure`: why the body is incomplete.
 */
function outcomeOfAnswer(
  answer: ServiceAnswer,
  runIdField: string | undefined,
  failure: unknown,
): CreateOutcome {
  const { status, text, location } = answer
  if (status === 201) {
    const parsed = parseJson(text)
    const body = parsed.ok ? parsed.value : readTornJson(text)
    const id = findRunId({ body, location, runIdField })
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
  const answered = `${status}${targetOf(location)}${message === '' ? '' : ` (${shortened(message, 120)})`}`
  return {
    kind: 'unknown',
    why: `the service answered ${answered}, which does not show whether it accepted the run`,
    httpStatus: status,
    text: wholeBody(answer),
    cause: failure,
  }
}

const targetOf = (location: string | undefined): string =>
  location === undefined ? '' : ` to ${shortened(location, 120)}`

/** A run that exists, because the service answered 201. */
export interface Accepted {
  readonly id: string
  /** Parsed body of the 201. Null if it is not JSON. */
  readonly body: unknown
}

/** Decides what to do next. `outcomes`: of all attempts, the latest last. `bodyBytes`: size of the request body. */
function decideCreate(
  outcomes: readonly CreateOutcome[],
  { baseUrl, clock }: Engine,
  bodyBytes: number,
): RetryDecision<Accepted> {
  const { host } = new URL(baseUrl)
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
            retryAfterMs(outcome.answer.retryAfter, clock.now()),
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
      return { fail: outcomeUnknown(outcome) }
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
  return badResponse(
    `${host} answered with a redirect (${status}${targetOf(location)}). Redirects are not followed. The run was not created.`,
    {
      httpStatus: status,
      hint: 'Use the URL that it redirects to, with --base-url, RUSHES_BASE_URL or `rushes config set baseUrl <url>`.',
    },
  )
}

const outcomeUnknown = ({
  why,
  httpStatus,
  cause,
}: Extract<CreateOutcome, { kind: 'unknown' }>): RushesError =>
  new RushesError(
    'submission_unknown',
    `The create request was sent, but ${why}. A run may exist and cost money.`,
    { hint: 'Check the runs of your account before you send it again.', httpStatus, cause },
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
