/** Options and methods of a local service. */
import type { Clock } from '../host/clock.js'
import type { Fetch } from '../host/http.js'
import type { Engine } from './engines/engine.js'
import type { Storage } from './files/contract.js'
import type { Address, HttpLimits } from './http/connections.js'
import type { Fault } from './http/faults.js'
import type { Metrics } from './http/metrics.js'
import type { ModelSetEngine } from './models/model-set.js'
import type { ServedModel } from './models/served-model.js'
import type { Passwords } from './rules/credentials.js'
import type { NodeRole } from './rules/names.js'
import type { RateLimiter } from './rules/rate.js'
import type { Claims } from './store/run.js'
import type { AssetFiles } from './web/assets.js'
import type { ConsoleStart } from './web/sessions.js'
import type { WriteLog } from './worker/log.js'
import type { CreateGrace } from './worker/worker.js'

export interface ServiceOptions {
  /**
   * Data folder: inputs, outputs, and the database unless `databaseUrl` is set. Created as a private folder if it does
   * not exist.
   */
  readonly dataFolder: string
  /** Storage of inputs and outputs; closed with the service. Default: folders in the data folder. */
  readonly storage?: Storage | undefined
  readonly engine: Engine & Partial<Pick<ModelSetEngine, 'modelOf'>>
  /** `postgres://…`. If undefined, the service uses SQLite in the data folder. */
  readonly databaseUrl?: string | undefined
  /** Default: `all`. A `worker` node answers only health checks; an `api` node renders no runs. */
  readonly role?: NodeRole | undefined
  readonly clock: Clock
  /** Maximum number of runs that render at the same time. */
  readonly concurrency: number
  readonly bodyLimitBytes?: number | undefined
  /** Base of output URLs. Default: the address that the service listens on. */
  readonly publicUrl?: string | undefined
  /** Creates a key for the account `default` that exists only in memory: for a service inside one command. */
  readonly ephemeralKey?: boolean | undefined
  /** Environment variables that configure the proxy for reference images. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  /** Faults to inject into requests over the port, and into runs (`--fault`). */
  readonly faults?: readonly Fault[] | undefined
  /** Called with one line for each internal error and each injected fault. Lines contain no keys or prompts. */
  readonly log?: WriteLog | undefined
  /** Maximum age of files, from the end of their run. Older ones are removed. If undefined, no file is removed. */
  readonly retainMs?: number | undefined
  /** The models that the service offers, and that `engine` renders. Default: `PREVIEW_MODELS`. */
  readonly models?: readonly ServedModel[] | undefined
  /** IP addresses and networks (CIDR) of proxies whose `X-Forwarded-For` is trusted. Default: none. */
  readonly trustedProxies?: readonly string[] | undefined
  /** Default: the limiter of the database; with SQLite, a limiter in memory, which counts only this process. */
  readonly rateLimiter?: RateLimiter | undefined
  /** The files of the console's pages. If undefined, the service has no console. */
  readonly console?: AssetFiles | undefined
  /**
   * Engine for the console's thumbnails: makes one WebP from the picture at `input.path` of a job. Closed with the
   * service. If undefined, there are no thumbnails.
   */
  readonly thumbnailEngine?: Engine | undefined
  /** Password hashing. Default: scrypt. */
  readonly passwords?: Passwords | undefined
  readonly httpLimits?: Partial<HttpLimits> | undefined
  /** Metrics that observe the service; closed with it. */
  readonly metrics?: Metrics | undefined
}

export interface Service {
  /** The ephemeral key, or the first key of a new data folder. Undefined otherwise, and for a worker. */
  readonly apiKey: string | undefined
  /** Undefined when the service has no console. */
  readonly console: ConsoleStart | undefined
  /** Calls the service without a port. */
  readonly fetch: Fetch
  /** Resolves with the service's URL once it accepts connections. Throws `RushesError` (usage) if it cannot listen. */
  listen(address: Address): Promise<{ readonly url: string }>
  /**
   * Starts to render queued runs and to remove old files. With `requested`, renders only runs that were created or
   * polled in this process, and leaves the others queued. Does nothing in the role `api`.
   */
  startRendering(claims?: Claims): void
  /**
   * Returns why this service cannot render a run, or cancel its job; undefined if it can. `mustExist`: also for a run of an
   * earlier version whose model it does not have.
   */
  findProblem(id: string, mustExist?: boolean): Promise<string | undefined>
  /**
   * Finishes responses in progress and returns unfinished renders to the queue, within 2 s after the grace. With `drain`, open
   * connections get one second for their next request, so that a proxy in front of several nodes loses no request.
   */
  close(options?: CreateGrace & { readonly drain?: boolean }): Promise<void>
}
