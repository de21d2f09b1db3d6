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

import { type Accepted, type CreateBody, createApiClient } from './client/index.js'
import { parseApiKey, parseBaseUrl } from './client/service-access.js'
import { createDownloader, type DownloadedFile, folderTarget } from './download/index.js'
import { messageOf, RushesError, usageError } from './errors.js'
import { type Clock, systemClock } from './host/clock.js'
import type { Fetch } from './host/http.js'
import { createNetwork } from './host/undici.js'
import { createLimiter } from './limiter/index.js'
import { RUNS_LIMIT } from './protocol/limits.js'
import type { RunState } from './protocol/run-state.js'

export interface CreateClientOptions {
  /** The service URL, for example `https://api.example.com`. Plain http is allowed for loopback only. */
  readonly baseUrl: string
  /** Sent to that origin only. */
  readonly apiKey: string
  /** Allow plain http to other machines: the key is then sent unencrypted. Default false. */
  readonly allowHttp?: boolean
  /** Further statuses that mean failure; case does not matter. */
  readonly failureStatuses?: readonly string[]
  /** Dotted path of the run id in the response to a create, tried before the usual places. */
  readonly runIdField?: string
  /** The environment that names the proxies. Default `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Replaces the network. It must throw `HttpFailure`, which says whether anything was sent. */
  readonly fetch?: Fetch
}

export interface CreateOptions {
  /** An abort before the request was sent cancels the create. After that the outcome is unknown: a run may exist. */
  readonly signal?: AbortSignal
  /** The create was certainly not accepted and is sent again after `waitMs`. */
  onRetry?(waitMs: number, why: 'rate-limited' | 'unconnected'): void
}

export interface WaitOptions {
  /**
   * Counted from the response to the create in the first wait after it (of the latest 1,000 creates), else from the call.
   * Default: no limit.
   */
  readonly timeoutMs?: number
  /** Ends the wait. The run continues. */
  readonly signal?: AbortSignal
  /** A status request failed; the wait continues. */
  onTrouble?(error: RushesError): void
}

export interface DownloadTo {
  /** Files are named `<id>.<ext>`, or `<id>-1.<ext>` … when there are several. Default: the current folder. */
  readonly folder?: string
  /** Replace files that exist. Default false. */
  readonly overwrite?: boolean
  /** Called for each file as soon as it has its name, also where another output fails or an abort follows. */
  onFile?(file: DownloadedFile): void
  /** An abort keeps the downloaded part, and a later download resumes it. */
  readonly signal?: AbortSignal
}

/** Every rejection is a `RushesError`, or the reason of the given signal. */
export interface Client {
  /** Without a trailing slash, query or fragment. */
  readonly baseUrl: string
  /**
   * Creates one run, which costs money. The request is repeated only if it was certainly not accepted. `submission_unknown`
   * means that a run may exist: check before you send it again.
   */
  create(body: CreateBody, options?: CreateOptions): Promise<Accepted>
  /** One status request, with up to three retries. */
  get(id: string, signal?: AbortSignal): Promise<RunState>
  /**
   * Returns the final state. Check its `phase`: a failed run is returned too. Throws `wait_timeout` when the run
   * is still running, a refusal, or the last error after six tries and two minutes without a valid response.
   */
  wait(id: string, options?: WaitOptions): Promise<RunState>
  /** The state after each status request, every one to two seconds, up to the final one. Throws as `wait` does. */
  states(id: string, options?: WaitOptions): AsyncGenerator<RunState>
  /**
   * Downloads the outputs of a succeeded run. Each file is complete or absent. When some fail, the others are downloaded,
   * and the first error is thrown: `onFile` tells which files there are.
   */
  download(run: RunState, to?: DownloadTo): Promise<readonly DownloadedFile[]>
  /** Closes idle connections, so that the process can end at once. */
  close(): Promise<void>
}

/**
 * One client has one key and one limit of 20 requests in 10 s: create one client per key. Nothing is
 * written to a journal. Throws `usage` for an invalid URL, `insecure_url` for plain http, `no_api_key` for an invalid key.
 */
export function createClient(options: CreateClientOptions): Client {
  const clock = systemClock
  const network =
    options.fetch === undefined
      ? createNetwork({ env: options.env ?? process.env, clock })
      : { fetch: options.fetch, close: async () => {} }
  const api = createApiClient({
    baseUrl: parseBaseUrl(options.baseUrl, { allowHttp: options.allowHttp ?? false }),
    apiKey: parseApiKey(options.apiKey, 'the option apiKey'),
    fetch: network.fetch,
    limiter: createLimiter(RUNS_LIMIT, clock),
    clock,
    random: Math.random,
    ...(options.failureStatuses && { failureStatuses: options.failureStatuses }),
    runIdField: options.runIdField,
  })
  const downloader = createDownloader({ fetch: network.fetch, clock, random: Math.random })
  const creates = createCreateTimes(clock)
  return {
    baseUrl: api.baseUrl,
    create: (body, createOptions = {}) =>
      rejectingAsPromised(createOptions.signal, async () => {
        const accepted = await api.create(body, createOptions)
        creates.add(accepted.id)
        return accepted
      }),
    get: (id, signal) => rejectingAsPromised(signal, () => api.get(id, signal)),
    wait: (id, waitOptions = {}) =>
      rejectingAsPromised(waitOptions.signal, () => api.wait(id, { ...waitOptions, ...creates.timesOf(id) })),
    async *states(id, waitOptions = {}) {
      try {
        yield* api.states(id, { ...waitOptions, ...creates.timesOf(id) })
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

/** Of a process that creates runs for weeks. */
const MAX_CREATES = 1_000

/** When creates were answered: a replica of the service may not know such a run yet. */
function createCreateTimes(clock: Pick<Clock, 'monotonic'>) {
  const creates = new Map<string, { readonly createdAtMs: number; isWaitedFor: boolean }>()
  return {
    add(id: string): void {
      creates.delete(id)
      creates.set(id, { createdAtMs: clock.monotonic(), isWaitedFor: false })
      for (const oldest of creates.keys()) {
        if (creates.size <= MAX_CREATES) return
        creates.delete(oldest)
      }
    },
    /** For a wait that begins now. */
    timesOf(id: string) {
      const create = creates.get(id)
      if (create === undefined) return {}
      const { createdAtMs, isWaitedFor } = create
      create.isWaitedFor = true
      return { createdAtMs, countedFromMs: isWaitedFor ? clock.monotonic() : createdAtMs }
    },
  }
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

/** A `RushesError`, or the reason of the signal. Others come from a callback, or are a bug. */
const promised = (thrown: unknown, signal: AbortSignal | undefined): unknown =>
  thrown instanceof RushesError || (signal?.aborted && thrown === signal.reason)
    ? thrown
    : new RushesError('internal', `Unexpected error: ${messageOf(thrown)}`, { cause: thrown })

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
