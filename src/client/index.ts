/**
 * Typed access to the service: each function sends one kind of request. Uses one `Fetch` and one rate limiter, and repeats
 * a create only if the service definitely did not accept it. Runs are followed in `src/runs`.
 */
import type { Clock } from '../host/clock.js'
import type { Fetch } from '../host/http.js'
import { checkRunId } from '../protocol/id.js'
import { createRedact } from '../protocol/redact.js'
import type { RunState } from '../protocol/run-state.js'
import { type CreateBody, createRun, encodeCreate } from './create.js'
import type { Accepted, CreateOutcome } from './create-outcome.js'
import { fetchModels, type ModelsOutcome } from './fetch-models.js'
import {
  cancelWithRetry,
  fetchStatus,
  fetchStatusWithRetry,
  type OnState,
  type StatusEngine,
  type StatusOutcome,
} from './fetch-status.js'
import {
  pipe,
  type RateLimiter,
  type Trace,
  withHttpFailures,
  withKey,
  withLimit,
  withTrace,
} from './requests.js'
import { originOf } from './service-access.js'

export interface ClientOptions {
  /** Base URL as returned by `parseBaseUrl`. */
  readonly baseUrl: string
  readonly apiKey: string
  readonly fetch: Fetch
  readonly limiter: RateLimiter
  readonly clock: Clock
  /** Additional statuses that mean failure. */
  readonly failureStatuses?: readonly string[]
  /** Dotted path of the id in the response to a create; tried before the usual fields. */
  readonly runIdField?: string | undefined
  readonly trace?: Trace | undefined
}

interface CreateHooks {
  readonly signal?: AbortSignal | undefined
  /** Called after the rate limiter's grant, directly before the bytes are sent; once per attempt. */
  beforeSend?(): void | Promise<void>
  /** Called with the outcome of each attempt, as soon as it is known. */
  onOutcome?(outcome: CreateOutcome): void
  /** Called when the service did not accept the create and it will be sent again. */
  onRetry?(waitMs: number, why: 'rate-limited' | 'unconnected'): void
}

export interface ApiClient {
  readonly baseUrl: string
  create(body: CreateBody | Uint8Array, options?: CreateHooks): Promise<Accepted>
  readonly limiter: RateLimiter
  /** Sends one status request. `onSend` is called directly before. Rejects only with the signal's reason. */
  status(id: string, signal?: AbortSignal, onSend?: () => void): Promise<StatusOutcome>
  /**
   * Sends one status request; retries up to three times if it fails, or if a run succeeded without URLs. Such a state
   * has `withoutUrls`, and `onWithoutUrls` is called with the first one at once.
   */
  get(id: string, signal?: AbortSignal, onWithoutUrls?: OnState): Promise<RunState>
  /**
   * Asks the service to cancel a run, with up to three retries, and returns its state. Throws with exit code 3 if the
   * service cannot cancel runs.
   */
  cancel(id: string, signal?: AbortSignal): Promise<RunState>
  /** Asks for the list of models, once. Rejects only with the signal's reason. */
  models(signal?: AbortSignal): Promise<ModelsOutcome>
}

export function createApiClient(options: ClientOptions): ApiClient {
  const { baseUrl, limiter, clock, runIdField, failureStatuses = [] } = options
  const keyed = pipe(
    options.fetch,
    withHttpFailures,
    withKey(options.apiKey, originOf(baseUrl)),
    withTrace(options.trace, clock),
  )
  const redact = createRedact(options.apiKey)
  const engine: StatusEngine = {
    baseUrl,
    send: pipe(keyed, withLimit(limiter, 'status')),
    limiter,
    clock,
    failureStatuses,
    runIdField,
    redact,
  }
  return {
    baseUrl,
    async create(body, { signal, beforeSend, ...listeners } = {}) {
      const send = pipe(keyed, withLimit(limiter, 'create', beforeSend))
      const bytes = body instanceof Uint8Array ? body : encodeCreate(body)
      return createRun({ baseUrl, send, limiter, clock, runIdField, redact, ...listeners }, bytes, signal)
    },
    limiter,
    status: (id, signal, onSend) =>
      fetchStatus({ ...engine, send: pipe(keyed, withLimit(limiter, 'status', onSend)) }, id, signal),
    get: async (id, signal, onWithoutUrls) =>
      fetchStatusWithRetry(engine, checkRunId(id), signal, onWithoutUrls),
    cancel: async (id, signal) => cancelWithRetry(engine, checkRunId(id), signal),
    models: (signal) => fetchModels(engine, signal),
  }
}

export type { Accepted, CreateBody, CreateOutcome, ModelsOutcome, RateLimiter, StatusOutcome, Trace }
export { encodeCreate }
