/**
 * Typed access to the service: each method sends one kind of request. Uses one `Fetch` and one rate limiter, and repeats
 * a create only if the service definitely did not accept it. Runs are followed in `src/runs`.
 */
import type { Clock } from '../host/clock.js'
import type { Fetch } from '../host/http.js'
import { checkRunId } from '../protocol/id.js'
import { createRedact } from '../protocol/redact.js'
import type { RunState } from '../protocol/run-state.js'
import {
  type Accepted,
  type CreateBody,
  type CreateHooks,
  type CreateOutcome,
  createRun,
  encodeCreate,
} from './create.js'
import {
  type Engine,
  pipe,
  type RateLimiter,
  type Trace,
  withHttpFailures,
  withKey,
  withLimit,
  withTrace,
} from './requests.js'
import {
  cancelWithRetry,
  fetchModels,
  fetchStatus,
  fetchStatusWithRetry,
  type ModelsOutcome,
  type StatusOutcome,
} from './status.js'

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

export class ApiClient {
  readonly baseUrl: string
  readonly limiter: RateLimiter
  /** Sends with the key, and without the limit. */
  readonly #send: Fetch
  readonly #engine: Engine

  constructor(options: ClientOptions) {
    const { baseUrl, apiKey, limiter, clock, runIdField, failureStatuses = [] } = options
    this.baseUrl = baseUrl
    this.limiter = limiter
    this.#send = pipe(
      options.fetch,
      withHttpFailures,
      withKey(apiKey, new URL(baseUrl).origin),
      withTrace(options.trace, clock),
    )
    const send = pipe(this.#send, withLimit(limiter, 'status'))
    const redact = createRedact(apiKey)
    this.#engine = { baseUrl, send, limiter, clock, redact, failureStatuses, runIdField }
  }

  async create(body: CreateBody | Uint8Array, hooks: CreateHooks = {}): Promise<Accepted> {
    const send = pipe(this.#send, withLimit(this.limiter, 'create', hooks.beforeSend))
    const bytes = body instanceof Uint8Array ? body : encodeCreate(body)
    return createRun({ ...this.#engine, send }, bytes, hooks)
  }

  /** Sends one status request. `onSend` is called directly before. Rejects only with the signal's reason. */
  status(id: string, signal?: AbortSignal, onSend?: () => void): Promise<StatusOutcome> {
    const send = pipe(this.#send, withLimit(this.limiter, 'status', onSend))
    return fetchStatus({ ...this.#engine, send }, id, signal)
  }

  /**
   * Sends one status request; retries up to three times if it fails, or if a run succeeded without URLs. Such a state
   * has `withoutUrls`, and `onWithoutUrls` is called with the first one at once.
   */
  async get(id: string, signal?: AbortSignal, onWithoutUrls?: (state: RunState) => void): Promise<RunState> {
    return fetchStatusWithRetry(this.#engine, checkRunId(id), signal, onWithoutUrls)
  }

  /**
   * Asks the service to cancel a run, with up to three retries, and returns its state. Throws with exit code 3 if the
   * service cannot cancel runs.
   */
  async cancel(id: string, signal?: AbortSignal): Promise<RunState> {
    return cancelWithRetry(this.#engine, checkRunId(id), signal)
  }

  /** Asks for the list of models, once. Rejects only with the signal's reason. */
  models(signal?: AbortSignal): Promise<ModelsOutcome> {
    return fetchModels(this.#engine, signal)
  }
}

export type { Accepted, CreateBody, CreateOutcome, ModelsOutcome, RateLimiter, StatusOutcome, Trace }
export { encodeCreate }
