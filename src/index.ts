/**
 * The public library. Importing it has no side effects.
 *
 * ```ts
 * import { createClient } from 'rushes'
 *
 * const client = createClient({ baseUrl: 'https://api.example.com', apiKey })
 * const { id } = await client.create({ model: 'acme/still-1', input: { prompt: 'a fox' } })
 * const run = await client.wait(id, { timeoutMs: 600_000 })
 * await client.download(run, { folder: 'out' })
 * await client.close()
 * ```
 *
 * This file is the whole public interface; docs/library.md shows how to use it.
 */
import { type Accepted, ApiClient, type CreateBody, encodeCreate } from './client/index.js'
import { parseApiKey, parseBaseUrl } from './client/service-access.js'
import { createDownloader, folderTarget } from './download/index.js'
import { messageOf, RushesError, usageError } from './errors.js'
import { systemClock } from './host/clock.js'
import type { Fetch } from './host/http.js'
import { createNetwork } from './host/undici.js'
import { Limiter } from './limiter/index.js'
import type { DownloadedFile } from './protocol/media.js'
import type { RunState } from './protocol/run-state.js'
import { pathProblem } from './protocol/validate.js'
import { withoutUrls } from './runs/follow.js'
import { states, wait } from './runs/wait.js'

export interface CreateClientOptions {
  /** The service URL, for example `https://api.example.com`. Plain http is allowed only for loopback addresses. */
  readonly baseUrl: string
  /** API key, sent only to the origin of `baseUrl`. */
  readonly apiKey: string
  /** Allows plain http to other machines, which sends the key unencrypted. Default: false. */
  readonly allowHttp?: boolean
  /** Additional statuses that mean failure. Case-insensitive. */
  readonly failureStatuses?: readonly string[]
  /** Dotted path of the run id in the response to a create. Tried before the default fields. */
  readonly runIdField?: string
  /** Environment variables, which may contain the proxy settings. Default: `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Replaces the network. Must throw `HttpFailure`, which says whether anything was sent. */
  readonly fetch?: Fetch
}

export interface CreateOptions {
  /**
   * Aborts the create. Before the request is sent, the create is cancelled. After that the outcome is unknown: a run
   * may exist.
   */
  readonly signal?: AbortSignal
  /** Called when the service did not accept the create. The create is sent again after `waitMs`. */
  onRetry?(waitMs: number, why: 'rate-limited' | 'unconnected'): void
}

export interface WaitOptions {
  /** Maximum wait in ms, counted from the call. Default: no limit. */
  readonly timeoutMs?: number
  /** Aborts the wait. The run continues. */
  readonly signal?: AbortSignal
  /** Called when a status request fails. The wait continues. */
  onTrouble?(error: RushesError): void
}

export interface DownloadTo {
  /**
   * Folder for the files, which are named `<id>.<ext>`, or `<id>-1.<ext>` … when there are several. Default: the
   * current folder.
   */
  readonly folder?: string
  /** Replaces existing files. Default: false. */
  readonly overwrite?: boolean
  /**
   * Called for each file as soon as it is complete and has its final name, even if another output fails or the download
   * is aborted later.
   */
  onFile?(file: DownloadedFile): void
  /** Aborts the download. Files that are not complete are removed. */
  readonly signal?: AbortSignal
}

/** A client for one service and one API key. Every rejection is a `RushesError` or the reason of the given signal. */
export interface Client {
  /** The service URL, without a trailing slash, query or fragment. */
  readonly baseUrl: string
  /**
   * Creates one run, which costs money. The request is repeated only if the service did not accept it. Fields for media
   * (`image_urls`, `mask`, names that end in `_url`) take http(s) and data: URLs; `usage` for anything else.
   * `submission_unknown` means that a run may exist: check before you create it again.
   */
  create(body: CreateBody, options?: CreateOptions): Promise<Accepted>
  /** Sends one status request, with up to three retries. Throws `bad_response` if the run succeeded without URLs. */
  get(id: string, signal?: AbortSignal): Promise<RunState>
  /**
   * Asks the service to cancel a run, with up to three retries, and returns its state: `canceled`, or the state of a run
   * that had ended. The error of a service that cannot cancel runs has the exit code 3; the run continues.
   */
  cancel(id: string, signal?: AbortSignal): Promise<RunState>
  /**
   * Waits for the final state and returns it. Check its `phase`, because a failed run is returned too. Throws
   * `wait_timeout` when the run is still running, `bad_response` when it succeeded without URLs, an error of the service
   * that refuses the request, or the last error after six attempts and two minutes without a valid response.
   */
  wait(id: string, options?: WaitOptions): Promise<RunState>
  /**
   * Yields the state after each status request, every one to two seconds, up to the final state. Throws the same errors
   * as `wait`.
   */
  states(id: string, options?: WaitOptions): AsyncGenerator<RunState>
  /**
   * Downloads the outputs of a succeeded run. Each file is either complete or absent. When some outputs fail, the
   * others are still downloaded and then the first error is thrown; `onFile` reports the downloaded files.
   */
  download(run: RunState, to?: DownloadTo): Promise<readonly DownloadedFile[]>
  /** Closes idle connections, so that the process can exit immediately. */
  close(): Promise<void>
}

/**
 * Creates a client. A client has one key and one limit of 20 requests in 10 s, so create one client per key. It writes
 * no journal. Throws `usage` for an invalid URL, `insecure_url` for plain http, `no_api_key` for an invalid key.
 */
export function createClient(options: CreateClientOptions): Client {
  const clock = systemClock
  const network =
    options.fetch === undefined
      ? createNetwork({ env: options.env ?? process.env, clock })
      : { fetch: options.fetch, close: async () => {} }
  const api = new ApiClient({
    baseUrl: parseBaseUrl(options.baseUrl, { allowHttp: options.allowHttp ?? false }),
    apiKey: parseApiKey(options.apiKey, 'the option apiKey'),
    fetch: network.fetch,
    limiter: new Limiter(clock),
    clock,
    ...(options.failureStatuses && { failureStatuses: options.failureStatuses }),
    runIdField: options.runIdField,
  })
  const downloader = createDownloader({ fetch: network.fetch, clock })
  const session = { client: api, clock, random: Math.random }
  const creates = new Map<string, number>()
  return {
    baseUrl: api.baseUrl,
    create: (body, createOptions = {}) =>
      rejectingAsPromised(createOptions.signal, async () => {
        const accepted = await api.create(encodeChecked(body), createOptions)
        addCreate(creates, accepted.id, clock.monotonic())
        return accepted
      }),
    get: (id, signal) =>
      rejectingAsPromised(signal, async () => {
        const state = await api.get(id, signal)
        if (state.withoutUrls !== undefined) throw withoutUrls(state)
        return state
      }),
    cancel: (id, signal) => rejectingAsPromised(signal, () => api.cancel(id, signal)),
    wait: (id, waitOptions = {}) =>
      rejectingAsPromised(waitOptions.signal, () =>
        wait(session, id, { ...waitOptions, createdAtMs: creates.get(id) }),
      ),
    async *states(id, waitOptions = {}) {
      try {
        yield* states(session, id, { ...waitOptions, createdAtMs: creates.get(id) })
      } catch (thrown) {
        throw promised(thrown, waitOptions.signal)
      }
    },
    download: (run, { folder = '.', overwrite, onFile, signal } = {}) =>
      rejectingAsPromised(signal, async () => {
        if (!Array.isArray(run?.urls))
          throw usageError('A download needs the state of a run, as `wait` returns it.')
        const outputs = run.urls.map((url, at) => ({
          url,
          runId: run.id,
          freshUrl: async () => (await api.get(run.id, signal)).urls[at],
        }))
        const results = await downloader.download(outputs, {
          target: folderTarget(folder),
          overwrite,
          signal,
          onSettled: (result) => {
            if (result.ok) onFile?.(result.file)
          },
        })
        return results.map((result) => {
          if (!result.ok) throw result.error
          return result.file
        })
      }),
    close: network.close,
  }
}

/** Throws `usage` for a body that cannot be sent, and for a path: it would be sent as it is, and paid. */
function encodeChecked(body: CreateBody): Uint8Array {
  const bytes = encodeCreate(body)
  const problem = pathProblem(body.input)
  if (problem === undefined) return bytes
  throw usageError(`${problem}. Nothing was sent.`, 'Read the file, and send it as a data: URL.')
}

/** Maximum number of creates whose time is stored. Bounds the memory of a process that creates runs for weeks. */
const MAX_CREATES = 1_000

/** Adds the time of the response to a create: a replica of the service may not know a new run yet. */
function addCreate(creates: Map<string, number>, id: string, createdAtMs: number): void {
  creates.delete(id)
  creates.set(id, createdAtMs)
  const [oldest = id] = creates.keys()
  if (creates.size > MAX_CREATES) creates.delete(oldest)
}

async function rejectingAsPromised<Result>(
  signal: AbortSignal | undefined,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work()
  } catch (thrown) {
    throw promised(thrown, signal)
  }
}

/**
 * Returns a `RushesError` or the reason of the signal unchanged. Wraps other errors, which come from a callback or are
 * a bug.
 */
const promised = (thrown: unknown, signal: AbortSignal | undefined): unknown =>
  thrown instanceof RushesError || (signal?.aborted && thrown === signal.reason)
    ? thrown
    : new RushesError('internal', `Unexpected error: ${messageOf(thrown)}`, { cause: thrown })

export type { Accepted, CreateBody } from './client/index.js'
export {
  EXIT,
  OWN_CODES,
  type OwnCode,
  RushesError,
  type RushesErrorChanges,
  type RushesErrorOptions,
} from './errors.js'
export { type Fetch, HttpFailure, type HttpRequest, type HttpResponse } from './host/http.js'
export type { DownloadedFile } from './protocol/media.js'
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
