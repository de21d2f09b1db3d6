/** Creates a run: sends the create, and repeats it if `decideCreate` allows it. */
import { messageOf, type RushesError, usageError } from '../errors.js'
import { HttpFailure, type HttpResponse } from '../host/http.js'
import { BodyTooLarge } from '../host/receive-text.js'
import { retry } from '../host/retry.js'
import { createRunUrl } from '../protocol/id.js'
import { writeJson } from '../protocol/json.js'
import { MAX_BODY_BYTES } from '../protocol/limits.js'
import { isModelName, type ModelInput } from '../protocol/models.js'
import { isObject, parseJson } from '../protocol/parse.js'
import { printable, shortened } from '../protocol/text.js'
import {
  type Accepted,
  type CreateOutcome,
  decideCreate,
  outcomeOfAnswer,
  SMALLER_BODY,
} from './create-outcome.js'
import { type RequestParts, receiveAnswer } from './requests.js'

/** Body of a create. */
export interface CreateBody {
  /** Identifier that the service publishes, in the form `<provider>/<name>`. */
  readonly model: string
  readonly input: ModelInput
}

interface CreateEngine extends RequestParts {
  readonly runIdField?: string | undefined
  /** Called with the outcome of each attempt, before the decision to retry. */
  onOutcome?(outcome: CreateOutcome): void
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
      `"${typeof model === 'string' ? shortened(printable(model)) : typeof model}" is not a valid model identifier.`,
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
    const why = shortened(printable(messageOf(error)))
    throw usageError(`The input of the run cannot be written as JSON: ${why}. Nothing was sent.`)
  }
}

export const tooLarge = (what: string): RushesError =>
  usageError(`${what}; the limit for a request body is ${MAX_BODY_BYTES / 1024 / 1024} MiB.`, SMALLER_BODY)

/** Resolves with the accepted run. Rejects with a `RushesError`, or with the signal's reason. */
export function createRun(engine: CreateEngine, body: Uint8Array, signal?: AbortSignal): Promise<Accepted> {
  const outcomes: CreateOutcome[] = []
  const host = new URL(engine.baseUrl).host
  return retry<CreateOutcome, Accepted>({
    clock: engine.clock,
    signal,
    attempt: () => sendOnce(engine, body, signal),
    decide: (outcome) => {
      outcomes.push(outcome)
      engine.onOutcome?.(outcome)
      return decideCreate(outcomes, { host, nowMs: engine.clock.now(), bodyBytes: body.byteLength })
    },
    onRetry: (outcome, waitMs) => {
      // The rate limit belongs to the key, so all other requests with the key wait too.
      if (outcome.kind === 'rate-limited') engine.limiter.holdBack(waitMs)
      if (outcome.kind === 'rate-limited' || outcome.kind === 'unconnected')
        engine.onRetry?.(waitMs, outcome.kind)
    },
  })
}

async function sendOnce(
  engine: CreateEngine,
  body: Uint8Array,
  signal?: AbortSignal,
): Promise<CreateOutcome> {
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
  const outcome = outcomeOfAnswer({
    answer,
    runIdField: engine.runIdField,
    tornBody: answer.status === 201 ? await tornBodyOf(answer.text) : undefined,
    failure,
  })
  // Throw the reason of an abort, unless the run is already known.
  if (failure === undefined || outcome.kind === 'accepted' || isBroken(failure) || !signal?.aborted)
    return outcome
  throw failure
}

/** Resolves with the readable values of an incomplete body; undefined if the body is complete. */
async function tornBodyOf(text: string): Promise<unknown> {
  if (parseJson(text).ok) return undefined
  const { parseTornJson } = await import('../protocol/torn-json.js')
  return parseTornJson(text)
}

const isBroken = (failure: unknown): boolean =>
  failure instanceof HttpFailure || failure instanceof BodyTooLarge
