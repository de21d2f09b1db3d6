/**
 * The local service: the published interface (SERVICE.md), here, with a renderer behind it. `rushes serve` runs it on a
 * port, `--local` inside the process of the command, tests without any port.
 *
 *   http/        Fastify: routes and answers, no rules
 *   rules/       pure: who is asking, how often, for what
 *   faults/      what goes wrong when it is asked for (`serve --fault`)
 *   runs.ts      the two endpoints without HTTP
 *   store/       what is remembered: a small contract, SQLite behind it
 *   worker/      leases, the queue, one render
 *   references/  the images that an input names
 *   engines/     what makes the outputs
 *
 * Limits: one machine. Requests are counted per process, credits and quotas across all processes on the data.
 */

import { join } from 'node:path'
import type { Clock } from '../host/clock.js'
import type { Fetch } from '../host/http.js'
import type { Kind } from '../protocol/models.js'
import { settlesWithin } from './closing.js'
import { createEndpoints } from './endpoints.js'
import type { Engine } from './engines/engine.js'
import { RendererCrashed } from './engines/renderer-crashed.js'
import { createFaults, type Fault, type Faults } from './faults/index.js'
import { createApp } from './http/app.js'
import { HTTP_LIMITS, type HttpLimits } from './http/connection-limits.js'
import { createInProcessFetch } from './http/in-process-fetch.js'
import { type Address, isOpenToOthers, type Listening, listenOn } from './http/listening.js'
import type { Logging } from './http/logging.js'
import { openKeyLookup } from './key-lookup.js'
import { LOCAL_MODELS } from './local-models.js'
import { type Log, silentLog } from './log.js'
import { openData } from './open-data.js'
import { createReferenceFetch } from './references/reference-fetch.js'
import { createReferenceLoader } from './references/reference-loader.js'
import { saveImage } from './references/save-image.js'
import { createRetention } from './retention.js'
import { createWorker } from './worker/worker.js'
import { createWorkerLease } from './worker/worker-lease.js'

export const DEFAULT_BODY_LIMIT_BYTES = 64 * 1_048_576

/** What output URLs begin with while the service neither listens nor has a public URL. */
const PLACEHOLDER_URL = 'http://localhost'

/** Answers in progress get this long when the service closes, and everything together that long. */
const ANSWERS_GRACE_MS = 3_000
const CLOSE_WITHIN_MS = 4_500

export interface ServiceOptions {
  /** Made private when it does not exist; holds the database, inputs and outputs. */
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
  /** FaultTarget proxies for references are looked up. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  /** What is to go wrong on purpose, for requests over the port. */
  readonly faults?: readonly Fault[] | undefined
  /** Told of each of these when it strikes, as in `create answered 429`. */
  readonly onFault?: ((words: string) => void) | undefined
  /** Told of what went wrong inside the service; never of keys or prompts. */
  readonly log?: ((line: object | string) => void) | undefined
  /** Outputs older than this are removed, and reference images that nothing needs; nothing is, when undefined. */
  readonly retainMs?: number | undefined
  /** What the two models are called; the local service's own names by default. */
  readonly models?: Partial<Readonly<Record<Kind, string>>> | undefined
  /** A structured log beside that, for a service on a port. */
  readonly logging?: Logging | undefined
  /** Addresses and networks (CIDR) of proxies whose `X-Forwarded-For` is believed; of nobody, by default. */
  readonly trustedProxies?: readonly string[] | undefined
  readonly httpLimits?: Partial<HttpLimits> | undefined
}

/** Without any, no request is looked at for them. */
const faultsOf = ({ faults = [], clock, onFault }: ServiceOptions): Faults | undefined =>
  faults.length === 0 ? undefined : createFaults({ faults, clock, ...(onFault && { onStrike: onFault }) })

export interface Service {
  /** The ephemeral key; else the first key on the first start of a data folder, shown this once; else undefined. */
  readonly apiKey: string | undefined
  /** Straight into the service, without a port. */
  readonly fetch: Fetch
  /** Resolves with the address once connections are taken. Throws `RushesError` (usage) when it cannot listen. */
  listen(address: Address): Promise<{ readonly url: string }>
  /** Begins to take runs from the queue, and to remove what is old. */
  startRendering(): void
  /** Finishes the answers in progress, gives back what is being rendered; within 5 s whatever happens. */
  close(): Promise<void>
}

/** Throws `RushesError` (usage) when the data folder cannot be used, or is of a later version. */
export async function createService(options: ServiceOptions): Promise<Service> {
  const { engine, clock, concurrency, logging, log = () => {} } = options
  const limits = { ...HTTP_LIMITS, ...options.httpLimits }
  const publicUrl = options.publicUrl?.replace(/\/+$/, '')
  const onError = (error: unknown) => {
    log(error instanceof Error ? error : String(error))
    if (error instanceof RendererCrashed) events.warn({ reason: error.message }, 'renderer died')
    else events.error({ err: error }, 'something went wrong inside the service')
  }
  /** Fastify has the logger, and the worker is there before Fastify. */
  let events: Log = silentLog
  let listening: Listening | undefined
  const baseUrl = () => publicUrl ?? listening?.url ?? PLACEHOLDER_URL

  const { folders, store } = await openData(options.dataFolder)
  const keys = await openKeyLookup(store, clock.now(), options.ephemeralKey ?? false)

  const presence = createWorkerLease({ store, clock, onError })
  const referenceFetch = createReferenceFetch({
    privateAllowed: () => !isOpenToOthers(listening?.host, publicUrl),
    clock,
    env: options.env ?? {},
  })
  const worker = createWorker({
    store,
    presence,
    clock,
    concurrency,
    log: { info: (fields, message) => events.info(fields, message) },
    onError,
    engine,
    references: createReferenceLoader({ folders, fetch: referenceFetch, findOutput: store.findOutput }),
    workFolder: join(folders.work, presence.id),
    outputsFolder: folders.outputs,
  })
  const runs = createEndpoints({
    store,
    models: { ...LOCAL_MODELS, ...options.models },
    clock,
    presence,
    worker,
    findKey: keys.find,
    saveImage: (image) => saveImage(folders.inputs, image),
  })
  const app = await createApp({
    runs: {
      runs,
      baseUrl,
      bodyLimits: { maxBytes: options.bodyLimitBytes ?? DEFAULT_BODY_LIMIT_BYTES, pace: limits, clock },
      logPrompts: logging?.prompts ?? false,
    },
    outputs: { folder: folders.outputs, findOutput: store.findOutput },
    faults: faultsOf(options),
    operations: { isReady },
    logging,
    limits,
    trustedProxies: options.trustedProxies,
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
    await store.listWorkers()
    return closing === undefined
  }

  async function closeHttp(): Promise<void> {
    const closed = app.close()
    if (!(await settlesWithin(ANSWERS_GRACE_MS, closed, clock))) app.server.closeAllConnections()
    await closed
  }

  async function closeAll(): Promise<void> {
    await Promise.all([
      closeHttp(),
      worker.close().then(() => presence.leave()),
      referenceFetch.close(),
      retention?.close(),
      engine.close?.(),
    ])
    await store.close()
  }

  let closing: Promise<void> | undefined
  return {
    apiKey: keys.shown,
    fetch: createInProcessFetch({
      app,
      isClosed: () => closing !== undefined,
      prefix: publicUrl === undefined ? '' : new URL(publicUrl).pathname.replace(/\/$/, ''),
    }),
    async listen(address) {
      listening = await listenOn(app, address)
      return { url: listening.url }
    },
    startRendering() {
      worker.start()
      retention?.start()
    },
    async close() {
      closing ??= settlesWithin(CLOSE_WITHIN_MS, closeAll().catch(onError), clock).then(() => {})
      await closing
    },
  }
}
