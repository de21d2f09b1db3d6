/** Creates a run: sends the create, and again where `decideCreate` says so. */
import type { Clock } from '../host/clock.js'
import { BodyTooLarge, type Fetch, HttpFailure, type HttpResponse } from '../host/http.js'
import { retry } from '../host/retry.js'
import type { ModelInput } from '../protocol/models.js'
import { createRunUrl } from '../protocol/routes.js'
import { headOf, readAnswer } from './answers.js'
import { type Accepted, type CreateOutcome, decideCreate, outcomeOfAnswer } from './create-outcome.js'
import type { RateLimiter } from './send.js'

/** The request of a create. */
export interface CreateBody {
  /** `<provider>/<name>`, as the service publishes it. */
  readonly model: string
  readonly input: ModelInput
}

export interface CreateEngine {
  readonly baseUrl: string
  readonly send: Fetch
  readonly limiter: Pick<RateLimiter, 'holdBack'>
  readonly clock: Clock
  readonly runIdField?: string | undefined
  redact?(text: string): string
  /** The outcome of each sending, before it is acted on. */
  onOutcome?(outcome: CreateOutcome): void
  onRetry?(waitMs: number, why: 'rate-limited' | 'unconnected'): void
}

/** The bytes of a create. They are made once, so that the bytes whose size is checked are those that are sent. */
export const encodeCreate = (body: CreateBody): Uint8Array =>
  Buffer.from(JSON.stringify({ model: body.model, input: body.input }))

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
      return decideCreate(outcomes, { host, nowMs: engine.clock.now() })
    },
    onRetry: (outcome, waitMs) => {
      // The limit is that of the key: all other requests with it wait too.
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
  let head: HttpResponse | undefined
  try {
    head = await engine.send({
      method: 'POST',
      url: createRunUrl(engine.baseUrl),
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body,
      signal,
      fresh: true,
    })
    return outcomeOfAnswer({ answer: await readAnswer(head, engine.redact), runIdField: engine.runIdField })
  } catch (error) {
    const lost = error instanceof HttpFailure || error instanceof BodyTooLarge
    if (!lost) throw error
    if (error instanceof HttpFailure && !error.sent) return { kind: 'unconnected', failure: error }
    return outcomeWithoutBody(head, error, engine.redact)
  }
}

/**
 * The head of the answer arrived and its body did not. The status alone says that it is a refusal, and a 201 may have the
 * id in its `Location`; any other outcome is unknown.
 */
function outcomeWithoutBody(
  head: HttpResponse | undefined,
  cause: Error,
  redact: CreateEngine['redact'],
): CreateOutcome {
  if (head === undefined) return { kind: 'unknown', why: `no answer came (${cause.message})`, cause }
  const outcome = outcomeOfAnswer({ answer: headOf(head, redact) })
  if (outcome.kind !== 'nameless' && outcome.kind !== 'unknown') return outcome
  const why = `its answer (${head.status}) could not be read whole (${cause.message})`
  return { kind: 'unknown', why, httpStatus: head.status, cause }
}
