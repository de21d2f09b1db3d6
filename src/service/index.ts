/**
 * The local service: the published interface (SERVICE.md), here, with a renderer behind it. `rushes serve` runs it on a
 * port, `--local` inside the process of the command, tests without any port.
 *
 *   http/         Fastify: routes and responses, no rules
 *   rules/        pure: keys, rate limit, request bodies, prices, addresses
 *   faults/       errors on demand (`serve --fault`)
 *   intake/       request bodies, large ones in a thread of their own
 *   endpoints.ts  the two endpoints without HTTP
 *   openapi/      the description of the interface, for clients and their tools
 *   store/        a small contract, and SQLite behind it
 *   files/        outputs and inputs: a contract, folders and S3 behind it
 *   rate/         the rate limiter: a contract, and one in memory
 *   worker/       leases, the queue, one render
 *   references/   the images that an input names
 *   engines/      what makes the outputs
 *   metrics/      Prometheus metrics, on a port of their own
 *
 * Limits: one machine. The rate limiter in memory counts per process, credits and quotas across all processes on the data.
 */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isDiskFull } from '../host/disk-space.js'
import { createEndpoints } from './endpoints.js'
import { createErrorLog } from './error-log.js'
import { createFaults, type Faults } from './faults/index.js'
import { createLocalStorage } from './files/local-files.js'
import { type ApiRoutes, createApp } from './http/app.js'
import { createBodyBudget } from './http/body-budget.js'
import { HTTP_LIMITS } from './http/connection-limits.js'
import { createInProcessFetch } from './http/in-process-fetch.js'
import { isOpenToOthers, type Listening, listenOn } from './http/listening.js'
import { createIntake } from './intake/index.js'
import { openKeyLookup } from './key-lookup.js'
import { LOCAL_MODELS } from './local-models.js'
import { type Log, silentLog } from './log.js'
import { openData } from './open-data.js'
import { createMemoryRateLimiter } from './rate/memory.js'
import { createReadiness } from './readiness.js'
import { createReferenceFetch } from './references/reference-fetch.js'
import { createReferenceLoader } from './references/reference-loader.js'
import { createRetention } from './retention.js'
import type { Service, ServiceOptions } from './service.js'
import { settlesWithin } from './settles-within.js'
import { openStore } from './store/open-store.js'
import { outputKey } from './stored-run.js'
import { createWorker } from './worker/worker.js'
import { createWorkerLease } from './worker/worker-lease.js'

export const DEFAULT_BODY_LIMIT_BYTES = 64 * 1_048_576

/** The memory for bodies in flight, in bodies of the largest size. */
const BODIES_IN_FLIGHT = 4

/** What output URLs begin with while the service neither listens nor has a public URL. */
const PLACEHOLDER_URL = 'http://localhost'

/** When the service closes: for responses in progress, and for everything together. */
const RESPONSE_GRACE_MS = 3_000
const MAX_CLOSE_MS = 4_500

const faultsOf = ({ faults = [], clock, onFault }: ServiceOptions): Faults | undefined =>
  faults.length === 0 ? undefined : createFaults({ faults, clock, ...(onFault && { onStrike: onFault }) })

/** Throws `RushesError` (usage) when the data folder cannot be used, or is of a later version. */
export async function createService(options: ServiceOptions): Promise<Service> {
  const { engine, clock, concurrency, logging, role = 'all', trustedProxies = [], log = () => {} } = options
  const limits = { ...HTTP_LIMITS, ...options.httpLimits }
  const publicUrl = options.publicUrl?.replace(/\/+$/, '')
  const onError = createErrorLog(log, { events: () => events, isClosing: () => closing !== undefined })
  /** Set once Fastify, which has the logger, exists; the worker is created before it. */
  let events: Log = silentLog
  let listening: Listening | undefined
  const baseUrl = () => publicUrl ?? listening?.url ?? PLACEHOLDER_URL

  const { folders, opened } = await openData(options.dataFolder, async (path) => {
    const { databaseUrl, databaseThread: inThread = false } = options
    const store = await openStore({ path, databaseUrl, inThread, clock })
    try {
      // A worker makes no key: nobody would see it.
      const keys =
        role === 'worker'
          ? { newKey: undefined, find: store.findKey }
          : await openKeyLookup(store, clock.now(), options.ephemeralKey ?? false)
      return { store, keys }
    } catch (error) {
      await store.close()
      throw error
    }
  })
  const { keys } = opened
  const { metrics } = options
  const store = metrics?.observeStore(opened.store) ?? opened.store

  const storage = options.storage ?? createLocalStorage(folders, clock)
  const { outputs, inputs } = storage
  const lease = createWorkerLease({ store, clock, onError })
  const referenceFetch = createReferenceFetch({
    privateAllowed: () => !isOpenToOthers({ host: listening?.host, publicUrl, trustedProxies, role }),
    clock,
    env: options.env ?? {},
  })
  const worker = createWorker({
    store,
    lease,
    clock,
    concurrency,
    timeRender: metrics?.timeRender,
    log: { info: (fields, message) => events.info(fields, message) },
    onError,
    engine,
    references: createReferenceLoader({
      inputs,
      outputs,
      fetch: referenceFetch,
      findOutput: store.findOutput,
    }),
    workFolder: join(folders.work, lease.id),
    outputs,
  })
  const isWritable = createReadiness({
    store,
    clock,
    isDiskFull: () => isDiskFull(options.dataFolder),
    checkStorage: storage.check,
  })
  const bodyLimitBytes = options.bodyLimitBytes ?? DEFAULT_BODY_LIMIT_BYTES
  const budget = createBodyBudget(BODIES_IN_FLIGHT * bodyLimitBytes)
  const models = { ...LOCAL_MODELS, ...options.models }
  const intake = createIntake(models)
  const endpoints = createEndpoints({
    store,
    intake,
    clock,
    rateLimiter: options.rateLimiter ?? opened.store.rateLimiter ?? createMemoryRateLimiter(clock),
    worker,
    findKey: keys.find,
    saveImage: ({ sha256, data, content_type: contentType }) =>
      inputs.put(sha256, { bytes: data }, { contentType }),
  })
  const api: ApiRoutes = {
    runs: {
      endpoints,
      baseUrl,
      bodyLimits: { maxBytes: bodyLimitBytes, pace: limits, budget, clock },
      logPrompts: logging?.prompts ?? false,
    },
    outputs: { files: outputs, findOutput: store.findOutput },
    openapi: { models, baseUrl },
  }
  const app = await createApp({
    api: role === 'worker' ? undefined : api,
    faults: faultsOf(options),
    operations: { isReady: async () => closing === undefined && (await isWritable()) },
    logging,
    limits,
    clock,
    trustedProxies,
    metrics,
    isDraining: () => draining,
    onError,
  })
  events = app.log

  const retention =
    options.retainMs === undefined
      ? undefined
      : createRetention({
          outputs,
          inputs,
          clock,
          retainMs: options.retainMs,
          imagesInUse: store.imagesInUse,
          log: events,
          onError,
        })

  async function closeHttp(): Promise<void> {
    const closed = app.close()
    if (!(await settlesWithin(RESPONSE_GRACE_MS, closed, clock))) app.server.closeAllConnections()
    await closed
  }

  async function closeAll(): Promise<void> {
    opened.store.stopWaiting()
    await Promise.all([
      // The bodies of requests in progress are still read.
      closeHttp().then(intake.close),
      worker.close().then(lease.release).catch(onError),
      referenceFetch.close(),
      retention?.close(),
      engine.close?.(),
      metrics?.close(),
    ])
    await store.close()
    storage.close?.()
  }

  let closing: Promise<void> | undefined
  let draining = false
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
      if (role === 'api') return
      worker.start(claims)
      retention?.start()
    },
    returnAbandonedRuns: worker.reap,
    async findOutputFile(url) {
      const [token = '', name = ''] = new URL(url).pathname.split('/').slice(-2).map(decodeURIComponent)
      const output = await store.findOutput(token, name)
      if (output === undefined) return undefined
      const path = outputs.pathOf?.(outputKey(output))
      return path !== undefined && existsSync(path) ? { ...output, path } : undefined
    },
    async close({ drain = false } = {}) {
      draining ||= drain
      closing ??= settlesWithin(MAX_CLOSE_MS, closeAll().catch(onError), clock).then(() => {})
      await closing
    },
  }
}

export type { OutputFile, Service, ServiceOptions } from './service.js'
