/**
 * The public library. Importing it has no side effects.
 *
 * ```ts
 * import { createClient } from 'rushes'
 * const client = createClient({ baseUrl: 'https://api.example.com', apiKey })
 * const { id } = await client.create({ model: 'acme/still-1', input: { prompt: 'a fox' } })
 * const run = await client.wait(id, { timeoutMs: 600_000 })
 * await client.download(run, { folder: 'out' })
 * await client.close()
 * ```
 *
 * This file is the whole public interface. docs/api.md lists it, and a test compares.
 */
import { parseBaseUrl } from './client/address.js'
import { type Accepted, type CreateBody, createApiClient } from './client/index.js'
import { createDownloader, type DownloadedFile } from './download/index.js'
import type { RushesError } from './errors.js'
import { systemClock } from './host/clock.js'
import type { Fetch } from './host/http.js'
import { createNetwork } from './host/undici.js'
import { createLimiter } from './limiter/index.js'
import { RUNS_LIMIT } from './protocol/limits.js'
import type { RunState } from './protocol/run-state.js'

export interface CreateClientOptions {
  /** The address of the service, as in `https://api.example.com`. Plain http is allowed for loopback alone. */
  readonly baseUrl: string
  /** Sent to that origin and to no other. */
  readonly apiKey: string
  /** Plain http to other machines: the key then travels in clear. Default false. */
  readonly allowHttp?: boolean
  /** Further statuses that mean failure; case does not matter. */
  readonly failureStatuses?: readonly string[]
  /** Dotted path of the id in the answer to a create, looked at before the usual places. */
  readonly runIdField?: string
  /** Where proxies are looked up; default `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** In place of the network. What it throws is to be an `HttpFailure`, which says whether anything was sent. */
  readonly fetch?: Fetch
}

export interface CreateOptions {
  /** Before anything is sent it ends the create. Afterwards the outcome is unknown: a run may exist. */
  readonly signal?: AbortSignal
  /** The create was certainly not accepted, and is sent again after that time. */
  onRetry?(waitMs: number, why: 'rate-limited' | 'unconnected'): void
}

export interface WaitOptions {
  /** In the first wait after the create counted from its answer, else from the call. Default: for ever. */
  readonly timeoutMs?: number
  /** Ends the waiting; the run goes on. */
  readonly signal?: AbortSignal
  /** A look brought no good answer; the wait goes on. */
  onTrouble?(error: RushesError): void
}

export interface DownloadTo {
  /** Files are named `<id>.<ext>`, or `<id>-1.<ext>` … when there are several. Default: the current folder. */
  readonly folder?: string
  /** Replace files that exist. Default false. */
  readonly overwrite?: boolean
  /** What has arrived is kept, and a later download goes on there. */
  readonly signal?: AbortSignal
}

/** Whatever it rejects with is a `RushesError`, or the reason of the signal that was given. */
export interface Client {
  /** Without a trailing slash, query or fragment. */
  readonly baseUrl: string
  /**
   * Creates one run; it costs money. It is sent again only where it was certainly not accepted. `submission_unknown`
   * means that a run may exist: do not send it again unseen.
   */
  create(body: CreateBody, options?: CreateOptions): Promise<Accepted>
  /** One look, with three more tries when it fails. */
  get(id: string, signal?: AbortSignal): Promise<RunState>
  /**
   * The final state: look at its `phase`, since a run that failed is an answer too. Throws `wait_timeout` when the run
   * goes on, a refusal, or the last trouble after six tries and two minutes without a good answer.
   */
  wait(id: string, options?: WaitOptions): Promise<RunState>
  /** Every state that a look shows, every one to two seconds, ending with the final one. Throws as `wait` does. */
  states(id: string, options?: WaitOptions): AsyncGenerator<RunState>
  /** The outputs of a succeeded run, each whole or not at all. Throws the first error (`download_failed`). */
  download(run: RunState, to?: DownloadTo): Promise<readonly DownloadedFile[]>
  /** Closes idle connections, so that the process can end at once. */
  close(): Promise<void>
}

/**
 * One client, one key, one limit of 20 requests in 10 s, kept within this client: make one for each key. Nothing is
 * written to a journal. Throws `usage` for an address that is none, `insecure_url` for plain http.
 */
export function createClient(options: CreateClientOptions): Client {
  const clock = systemClock
  const network =
    options.fetch === undefined
      ? createNetwork({ env: options.env ?? process.env, clock })
      : { fetch: options.fetch, close: async () => {} }
  const api = createApiClient({
    baseUrl: parseBaseUrl(options.baseUrl, { allowHttp: options.allowHttp ?? false }),
    apiKey: options.apiKey,
    fetch: network.fetch,
    limiter: createLimiter(RUNS_LIMIT, clock),
    clock,
    random: Math.random,
    ...(options.failureStatuses && { failureStatuses: options.failureStatuses }),
    runIdField: options.runIdField,
  })
  const downloader = createDownloader({ fetch: network.fetch, clock, random: Math.random })
  /** When each create was answered, until the first wait: a replica of the service may not know the run at once. */
  const createdAtMs = new Map<string, number>()
  const sinceCreate = (id: string, waitOptions: WaitOptions = {}) => {
    const options = { ...waitOptions, createdAtMs: createdAtMs.get(id) }
    createdAtMs.delete(id)
    return options
  }
  return {
    baseUrl: api.baseUrl,
    async create(body, createOptions = {}) {
      const accepted = await api.create(body, createOptions)
      createdAtMs.set(accepted.id, clock.monotonic())
      return accepted
    },
    get: api.get,
    wait: (id, waitOptions) => api.wait(id, sinceCreate(id, waitOptions)),
    states: (id, waitOptions) => api.states(id, sinceCreate(id, waitOptions)),
    async download(run, { folder = '.', overwrite, signal } = {}) {
      const outputs = run.urls.map((url, at) => ({
        url,
        runId: run.id,
        freshUrl: async () => (await api.get(run.id, signal)).urls[at],
      }))
      const results = await downloader.download(outputs, {
        target: { kind: 'folder', folder },
        overwrite,
        signal,
      })
      return results.map((result) => {
        if (!result.ok) throw result.error
        return result.file
      })
    },
    close: network.close,
  }
}

export type { Accepted, CreateBody } from './client/index.js'
export type { DownloadedFile } from './download/index.js'
export {
  EXIT,
  OWN_CODES,
  type OwnCode,
  RushesError,
  type RushesErrorChanges,
  type RushesErrorOptions,
} from './errors.js'
export { type Fetch, HttpFailure, type HttpRequest, type HttpResponse } from './host/http.js'
export {
  type ImageInput,
  KINDS,
  type Kind,
  MODEL_INPUTS,
  type ModelInput,
  type VideoInput,
} from './protocol/models.js'
export { PROBLEMS, type ProblemCode } from './protocol/problems.js'
export type { Phase, RunState } from './protocol/run-state.js'
