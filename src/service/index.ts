/**
 * The local service: the published interface (SERVICE.md), here, with a renderer behind it. `rushes serve` runs it on a
 * port, `--local` inside the process of the command, tests without any port.
 *
 *   http/         Fastify: routes and responses, no rules
 *   rules/        pure: keys, rate limit, request bodies, prices, addresses
 *   faults/       errors on demand (`serve --fault`)
 *   intake/       request bodies, large ones in a thread of their own
 *   endpoints.ts  the two endpoints without HTTP
 *   store/        a small contract, and SQLite behind it
 *   worker/       leases, the queue, one render
 *   references/   the images that an input names
 *   engines/      what makes the outputs
 *
 * Limits: one machine. Requests are counted per process, credits and quotas across all processes on the data.
 */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../host/clock.js'
import type { Fetch } from '../host/http.js'
import { describeReason } from '../host/system-error.js'
import type { Kind } from '../protocol/models.js'
import { createEndpoints } from './endpoints.js'
import type { Engine } from './engines/engine.js'
import { RendererCrashed } from './engines/renderer-crashed.js'
import { createFaults, type Fault, type Faults } from './faults/index.js'
import { createApp } from './http/app.js'
import { createBodyBudget } from './http/body-budget.js'
import { HTTP_LIMITS, type HttpLimits } from './http/connection-limits.js'
import { isDiskUnusable } from './http/error-responses.js'
import { createInProcessFetch } from './http/in-process-fetch.js'
import { type Address, isOpenToOthers, type Listening, listenOn } from './http/listening.js'
import type { Logging } from './http/logging.js'
import { createIntake } from './intake/index.js'
import { openKeyLookup } from './key-lookup.js'
import { LOCAL_MODELS } from './local-models.js'
import { type Log, silentLog } from './log.js'
import { openData } from './open-data.js'
import { createReferenceFetch } from './references/reference-fetch.js'
import { createReferenceLoader } from './references/reference-loader.js'
import { saveImage } from './references/save-image.js'
import { createRetention } from './retention.js'
import { settlesWithin } from './settles-within.js'
import type { Claims } from './store/contract.js'
import { withBudgetCheck } from './store/service-store.js'
import { openSqliteStore } from './store/sqlite/index.js'
import { openStoreThread } from './store/thread/index.js'
import type { StoredOutput } from './stored-run.js'
import { createWorker } from './worker/worker.js'
import { createWorkerLease } from './worker/worker-lease.js'

export const DEFAULT_BODY_LIMIT_BYTES = 64 * 1_048_576

/** The memory for bodies in flight, in bodies of the largest size. */
const BODIES_IN_FLIGHT = 4

/** A write to the database that takes longer means that it is locked. */
const READY_LIMIT_MS = 1_000

/** What output URLs begin with while the service neither listens nor has a public URL. */
const PLACEHOLDER_URL = 'http://localhost'

/** When the service closes: for responses in progress, and for everything together. */
const RESPONSE_GRACE_MS = 3_000
const MAX_CLOSE_MS = 4_500

export interface ServiceOptions {
  /** Holds the database, inputs and outputs; created, and private, when it does not exist. */
  readonly dataFolder: string
  readonly engine: Engine
  readonly clock: Clock
  /** How many runs are rendered at once. */
  readonly concurrency: number
  readonly bodyLimitBytes?: number | undefined
  /** What output URLs begin with, in place of the address that the service listens on. */
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
  readonly httpLimits?: Partial<HttpLimits> | undefined
}

const faultsOf = ({ faults = [], clock, onFault }: ServiceOptions): Faults | undefined =>
  faults.length === 0 ? undefined : createFaults({ faults, clock, ...(onFault && { onStrike: onFault }) })

export interface OutputFile extends StoredOutput {
  readonly path: string
}

export interface Service {
  /** The ephemeral key, or the first key on the first start of a data folder; otherwise undefined. */
  readonly apiKey: string | undefined
  /** Calls the service without a port. */
  readonly fetch: Fetch
  /** Resolves with the URL once it accepts connections. Throws `RushesError` (usage) when it cannot listen. */
  listen(address: Address): Promise<{ readonly url: string }>
  /**
   * Starts to render queued runs, and to remove old files. With `requested` it renders only the runs that were created
   * here and those that are polled, and leaves the others queued.
   */
  startRendering(claims?: Claims): void
  /** Returns the renders of processes that have ended to the queue. */
  returnAbandonedRuns(): Promise<void>
  /** The file behind an output URL; undefined when it is not there. */
  findOutputFile(url: string): Promise<OutputFile | undefined>
  /** Finishes responses in progress and returns unfinished renders to the queue; always within 5 s. */
  close(): Promise<void>
}

/** Throws `RushesError` (usage) when the data folder cannot be used, or is of a later version. */
export async function createService(options: ServiceOptions): Promise<Service> {
  const { engine, clock, concurrency, logging, trustedProxies = [], log = () => {} } = options
  const limits = { ...HTTP_LIMITS, ...options.httpLimits }
  const publicUrl = options.publicUrl?.replace(/\/+$/, '')
  const onError = (error: unknown) => {
    log(error instanceof Error ? error : String(error))
    if (error instanceof RendererCrashed) events.warn({ reason: error.message }, 'renderer crashed')
    else if (!isDiskUnusable(error)) events.error({ err: error }, 'internal error')
    else if (!saidUnusable) {
      // On closing, each write that is given up would say the same.
      saidUnusable = closing !== undefined
      events.error({ reason: describeReason(error) }, 'the database or the disk cannot be written')
    }
  }
  let saidUnusable = false
  /** Set once Fastify, which has the logger, exists; the worker is created before it. */
  let events: Log = silentLog
  let listening: Listening | undefined
  const baseUrl = () => publicUrl ?? listening?.url ?? PLACEHOLDER_URL

  const { folders, opened } = await openData(options.dataFolder, async (path) => {
    const store = options.databaseThread
      ? await openStoreThread(path)
      : { ...withBudgetCheck(openSqliteStore(path)), stopWaiting() {} }
    try {
      return { store, keys: await openKeyLookup(store, clock.now(), options.ephemeralKey ?? false) }
    } catch (error) {
      await store.close()
      throw error
    }
  })
  const { store, keys } = opened

  const lease = createWorkerLease({ store, clock, onError })
  const referenceFetch = createReferenceFetch({
    privateAllowed: () => !isOpenToOthers({ host: listening?.host, publicUrl, trustedProxies }),
    clock,
    env: options.env ?? {},
  })
  const worker = createWorker({
    store,
    lease,
    clock,
    concurrency,
    log: { info: (fields, message) => events.info(fields, message) },
    onError,
    engine,
    references: createReferenceLoader({ folders, fetch: referenceFetch, findOutput: store.findOutput }),
    workFolder: join(folders.work, lease.id),
    outputsFolder: folders.outputs,
  })
  const bodyLimitBytes = options.bodyLimitBytes ?? DEFAULT_BODY_LIMIT_BYTES
  const budget = createBodyBudget(BODIES_IN_FLIGHT * bodyLimitBytes)
  const intake = createIntake({ ...LOCAL_MODELS, ...options.models })
  const endpoints = createEndpoints({
    store,
    intake,
    clock,
    lease,
    worker,
    findKey: keys.find,
    saveImage: (image) => saveImage(folders.inputs, image),
  })
  const app = await createApp({
    runs: {
      endpoints,
      baseUrl,
      bodyLimits: { maxBytes: bodyLimitBytes, pace: limits, budget, clock },
      logPrompts: logging?.prompts ?? false,
    },
    outputs: { folder: folders.outputs, findOutput: store.findOutput },
    faults: faultsOf(options),
    operations: { isReady },
    logging,
    limits,
    clock,
    trustedProxies,
    onError,
  })
  events = app.log

  const retention =
    options.retainMs === undefined
      ? undefined
      : createRetention({
          folders,
          clock,
          retainMs: options.retainMs,
          imagesInUse: store.imagesInUse,
          log: events,
          onError,
        })

  async function isReady(): Promise<boolean> {
    return closing === undefined && (await settlesWithin(READY_LIMIT_MS, lease.renew(), clock))
  }

  async function closeHttp(): Promise<void> {
    const closed = app.close()
    if (!(await settlesWithin(RESPONSE_GRACE_MS, closed, clock))) app.server.closeAllConnections()
    await closed
  }

  async function closeAll(): Promise<void> {
    store.stopWaiting()
    await Promise.all([
      // The bodies of requests in progress are still read.
      closeHttp().then(intake.close),
      worker.close().then(() => lease.release().catch(onError)),
      referenceFetch.close(),
      retention?.close(),
      engine.close?.(),
    ])
    await store.close()
  }

  let closing: Promise<void> | undefined
  return {
    apiKey: keys.newKey,
    fetch: createInProcessFetch({
      app,
      isClosed: () => closing !== undefined,
      prefix: publicUrl === undefined ? '' : new URL(publicUrl).pathname.replace(/\/$/, ''),
    }),
    async listen(address) {
      listening = await listenOn(app, address)
      return { url: listening.url }
    },
    startRendering(claims) {
      worker.start(claims)
      retention?.start()
    },
    returnAbandonedRuns: worker.reap,
    async findOutputFile(url) {
      const [token = '', name = ''] = new URL(url).pathname.split('/').slice(-2).map(decodeURIComponent)
      const output = await store.findOutput(token, name)
      if (output === undefined) return undefined
      const path = join(folders.outputs, token, name)
      return existsSync(path) ? { ...output, path } : undefined
    },
    async close() {
      closing ??= settlesWithin(MAX_CLOSE_MS, closeAll().catch(onError), clock).then(() => {})
      await closing
    },
  }
}
