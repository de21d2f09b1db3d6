/**
 * The library: what the commands are made of, typed. Importing it has no side effects.
 *
 * ```ts
 * import { createClient } from 'rushes'
 * const client = await createClient({ baseUrl: 'https://api.example.com', apiKey })
 * const { id } = await client.create({ model: 'acme/still-1', input: { prompt: 'a fox' } })
 * const run = await client.wait(id, { timeoutMs: 600_000 })
 * await client.download(run, { folder: 'out' })
 * await client.close()
 * ```
 */
import { parseBaseUrl } from './client/address.js'
import { type Client as ApiClient, createApiClient } from './client/index.js'
import { createDownloader, type DownloadedFile } from './download/index.js'
import { systemClock } from './host/clock.js'
import type { Fetch } from './host/http.js'
import { createNetwork } from './host/undici.js'
import { createLimiter } from './limiter/index.js'
import { RUNS_LIMIT } from './protocol/limits.js'
import type { RunState } from './protocol/run.js'

export interface CreateClientOptions {
  readonly baseUrl: string
  readonly apiKey: string
  /** Plain http to other machines: the key then travels in clear. Default false. */
  readonly allowHttp?: boolean
  /** Further statuses that mean failure. */
  readonly failureStatuses?: readonly string[]
  /** Dotted path of the id in the answer to a create. */
  readonly runIdField?: string
  /** Where proxies are looked up; default `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** In place of the network. */
  readonly fetch?: Fetch
}

export interface DownloadTo {
  /** Files are named `<id>.<ext>`, or `<id>-1.<ext>` … when there are several. Default: the current folder. */
  readonly folder?: string
  /** Replace files that exist. Default false. */
  readonly overwrite?: boolean
  readonly signal?: AbortSignal
}

export interface Client extends Omit<ApiClient, 'baseUrl'> {
  readonly baseUrl: string
  /** The outputs of a succeeded run, whole or not at all. Throws the first error (`download_failed`). */
  download(run: RunState, to?: DownloadTo): Promise<readonly DownloadedFile[]>
  /** Closes idle connections, so that the process can end at once. */
  close(): Promise<void>
}

/** One client, one key, one limit of 20 requests in 10 s. Throws `RushesError` for an address that is none. */
export function createClient(options: CreateClientOptions): Client {
  const clock = systemClock
  const network =
    options.fetch === undefined
      ? createNetwork({ env: options.env ?? process.env, clock })
      : { fetch: options.fetch, close: async () => {} }
  const client = createApiClient({
    baseUrl: parseBaseUrl(options.baseUrl, { allowHttp: options.allowHttp ?? false }),
    apiKey: options.apiKey,
    fetch: network.fetch,
    gate: createLimiter(RUNS_LIMIT, clock),
    clock,
    random: Math.random,
    ...(options.failureStatuses && { failureStatuses: options.failureStatuses }),
    runIdField: options.runIdField,
  })
  const downloader = createDownloader({ fetch: network.fetch, clock, random: Math.random })
  return {
    ...client,
    async download(run, { folder = '.', overwrite, signal } = {}) {
      const outputs = run.urls.map((url, at) => ({
        url,
        runId: run.id,
        freshUrl: async () => (await client.get(run.id, signal)).urls[at],
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

export type { Accepted, CreateBody, WaitOptions } from './client/index.js'
export type { DownloadedFile } from './download/index.js'
export { EXIT, OWN_CODES, RushesError } from './errors.js'
export type { Fetch, HttpRequest, HttpResponse } from './host/http.js'
export {
  type ImageInput,
  type Kind,
  MODEL_INPUTS,
  type ModelInput,
  type VideoInput,
} from './protocol/models.js'
export { PROBLEMS, type ProblemCode } from './protocol/problems.js'
export type { RunState } from './protocol/run.js'
