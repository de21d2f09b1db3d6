/** The options and the methods of a local service. */
import type { Clock } from '../host/clock.js'
import type { Fetch } from '../host/http.js'
import type { Kind } from '../protocol/models.js'
import type { Page } from './console/page.js'
import type { Engine } from './engines/engine.js'
import type { Fault } from './faults/fault.js'
import type { Storage } from './files/contract.js'
import type { HttpLimits } from './http/connections.js'
import type { Address } from './http/listening.js'
import type { Logging } from './http/operations.js'
import type { Metrics } from './metrics/index.js'
import type { NodeRole } from './names.js'
import type { RateLimiter } from './rate/rate-limiter.js'
import type { Passwords } from './rules/credentials.js'
import type { Claims } from './store/contract.js'
import type { StoredOutput } from './stored-run.js'

export interface ServiceOptions {
  /** Holds the database, unless that is PostgreSQL, inputs and outputs; created, and private, when it does not exist. */
  readonly dataFolder: string
  /** Where outputs and inputs are kept, and closed with the service; by default folders of the data folder. */
  readonly storage?: Storage | undefined
  readonly engine: Engine
  /** `postgres://…`; undefined: SQLite in the data folder. */
  readonly databaseUrl?: string | undefined
  /** By default `all`. A worker answers health checks alone; an `api` node leaves the queue to others. */
  readonly role?: NodeRole | undefined
  readonly clock: Clock
  /** How many runs are rendered at once. */
  readonly concurrency: number
  readonly bodyLimitBytes?: number | undefined
  /** The start of output URLs, instead of the address that the service listens on. */
  readonly publicUrl?: string | undefined
  /** A key for the account `default` that lives in memory only: for a service inside one command. */
  readonly ephemeralKey?: boolean | undefined
  /** Read for the proxy through which references are fetched. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  /** Errors on demand, for requests over the port. */
  readonly faults?: readonly Fault[] | undefined
  /** Called for each fault that is applied, with text such as `create answered 429`. */
  readonly onFault?: ((words: string) => void) | undefined
  /** Called with internal errors; they contain no keys or prompts. */
  readonly log?: ((line: object | string) => void) | undefined
  /** Older outputs are removed, and reference images that no unfinished run needs. Undefined: nothing is removed. */
  readonly retainMs?: number | undefined
  /** Names of the two models; by default `LOCAL_MODELS`. */
  readonly models?: Partial<Readonly<Record<Kind, string>>> | undefined
  /** The structured log. */
  readonly logging?: Logging | undefined
  /** Addresses and networks (CIDR) of proxies whose `X-Forwarded-For` is trusted; by default none. */
  readonly trustedProxies?: readonly string[] | undefined
  /** Run the database in a thread, so that waiting for it holds up no request: for a service with many clients. */
  readonly databaseThread?: boolean | undefined
  /** By default one in memory, which counts the requests of this process. */
  readonly rateLimiter?: RateLimiter | undefined
  /** The page of the console, which is at `/`, with its endpoints. Undefined: without a console. */
  readonly console?: Page | undefined
  /**
   * Makes the thumbnails of the console: one WebP of the picture at `input.path` of a job. Closed with the service.
   * Undefined: the list of runs shows whole pictures.
   */
  readonly thumbnailEngine?: Engine | undefined
  /** By default scrypt. */
  readonly passwords?: Passwords | undefined
  readonly httpLimits?: Partial<HttpLimits> | undefined
  /** Observe the service, and are closed with it. */
  readonly metrics?: Metrics | undefined
}

interface LocalOutputFile extends StoredOutput {
  readonly path: string
}

export interface ConsoleStart {
  /** Of a link that signs in once, as the first user. On the first start only. */
  readonly linkToken: string | undefined
  readonly hasUsers: boolean
}

export interface Service {
  /** The ephemeral key, or the first key on the first start of a data folder; otherwise, and for a worker, undefined. */
  readonly apiKey: string | undefined
  /** Undefined when the service has no console. */
  readonly console: ConsoleStart | undefined
  /** Calls the service without a port. */
  readonly fetch: Fetch
  /** Resolves with the URL once it accepts connections. Throws `RushesError` (usage) when it cannot listen. */
  listen(address: Address): Promise<{ readonly url: string }>
  /**
   * Starts to render queued runs, and to remove old files. With `requested` it renders only the runs that were created
   * here and those that are polled, and leaves the others queued. Does nothing in the role `api`.
   */
  startRendering(claims?: Claims): void
  /** Returns the renders of processes that have ended to the queue. */
  returnAbandonedRuns(): Promise<void>
  /** The file behind an output URL; undefined when it is not there. */
  findOutputFile(url: string): Promise<LocalOutputFile | undefined>
  /**
   * Finishes responses in progress and returns unfinished renders to the queue; always within 5 s. `drain`: open
   * connections get a second for their next request, so that a proxy in front of several nodes loses none.
   */
  close(options?: { readonly drain?: boolean }): Promise<void>
}
