/**
 * Typed access to the service: create, get, wait. Talks through one `Fetch`, keeps to one limiter, and never sends
 * a create twice unless the first was certainly not accepted.
 */
import type { Clock } from '../host/clock.js'
import type { Fetch } from '../host/http.js'
import type { RunState } from '../protocol/run.js'
import { originOf } from './address.js'
import { type CreateBody, createRun, encodeCreate } from './create.js'
import type { Accepted, CreateOutcome } from './create-outcome.js'
import { type LookOutcome, look, lookPatiently } from './fetch-status.js'
import { concealing } from './redact.js'
import { pipe, type RateLimiter, type Trace, withKey, withLimit, withTrace } from './send.js'
import { states, type WaitEngine, type WaitOptions, wait } from './wait.js'

export interface ClientOptions {
  /** As `parseBaseUrl` gives it. */
  readonly baseUrl: string
  readonly apiKey: string
  readonly fetch: Fetch
  readonly limiter: RateLimiter
  readonly clock: Clock
  /** In [0, 1); for jitter. */
  random(): number
  /** Further statuses that mean failure. */
  readonly failureStatuses?: readonly string[]
  /** Dotted path of the id in the answer to a create, looked at before the usual places. */
  readonly runIdField?: string | undefined
  readonly trace?: Trace | undefined
}

export interface CreateOptions {
  readonly signal?: AbortSignal | undefined
  /** After the limiter's grant, directly before the bytes are sent; once for every sending. */
  beforeSend?(): void | Promise<void>
  /** What each sending came to, as soon as it is known. */
  onOutcome?(outcome: CreateOutcome): void
  /** The create was certainly not accepted and will be sent again. */
  onRetry?(waitMs: number, why: 'rate-limited' | 'unconnected'): void
}

export interface Client {
  readonly baseUrl: string
  create(body: CreateBody | Uint8Array, options?: CreateOptions): Promise<Accepted>
  /** One look and no more: whatever comes of it is an outcome. Rejects with the signal's reason alone. */
  look(id: string, signal?: AbortSignal): Promise<LookOutcome>
  /** One look, with three more tries when it fails. */
  get(id: string, signal?: AbortSignal): Promise<RunState>
  wait(id: string, options?: WaitOptions): Promise<RunState>
  states(id: string, options?: WaitOptions): AsyncGenerator<RunState>
}

export function createApiClient(options: ClientOptions): Client {
  const { baseUrl, limiter, clock, runIdField, failureStatuses = [] } = options
  const keyed = pipe(
    options.fetch,
    withKey(options.apiKey, originOf(baseUrl)),
    withTrace(options.trace, clock),
  )
  const conceal = concealing(options.apiKey)
  const looking: WaitEngine = {
    baseUrl,
    send: pipe(keyed, withLimit(limiter)),
    limiter,
    clock,
    failureStatuses,
    conceal,
    random: options.random,
  }
  return {
    baseUrl,
    create(body, { signal, beforeSend, ...told } = {}) {
      const send = pipe(keyed, withLimit(limiter, beforeSend))
      const bytes = body instanceof Uint8Array ? body : encodeCreate(body)
      return createRun({ baseUrl, send, limiter, clock, runIdField, conceal, ...told }, bytes, signal)
    },
    look: (id, signal) => look(looking, id, signal),
    get: (id, signal) => lookPatiently(looking, id, signal),
    wait: (id, waitOptions) => wait(looking, id, waitOptions),
    states: (id, waitOptions) => states(looking, id, waitOptions),
  }
}

export type { Accepted, CreateBody, CreateOutcome, LookOutcome, RateLimiter, Trace, WaitOptions }
export { encodeCreate }
