/**
 * The local service: the published API (docs/service.md) with a renderer on this machine. `rushes serve` runs it on a
 * port, `--local` runs it inside the command's process, and tests run it without a port.
 *
 * This file puts the parts together. A folder imports only those above it:
 *
 *   rules/        keys, terms, networks, passwords, rates: without a database
 *   engines/      the types of engines that render outputs
 *   models/       the documents of the models, and the engine of each
 *   store/        the database, SQLite or PostgreSQL
 *   files/        outputs and inputs, in folders or S3
 *   references/   the reference images of an input
 *   worker/       leases, the queue, one render, and the removal of old files
 *   http/         Fastify: routes, responses, metrics
 *   web/          the console: its pages and sign-in; their components are in src/console
 *
 * The rate limiter in memory counts the requests of its process; the limiter in PostgreSQL counts all nodes. Credits
 * and quotas count across all processes that use the same data.
 */
import type { FastifyInstance } from 'fastify'
import { settlesWithin } from '../host/abort.js'
import { isDiskFull } from '../host/file-system.js'
import { MAX_BODY_BYTES } from '../protocol/limits.js'
import { type DataFolders, openData } from './data.js'
import { OWNER_KEY, type Storage } from './files/contract.js'
import { createLocalStorage } from './files/local-files.js'
import { closeApp, createApp, createReadiness } from './http/app.js'
import {
  addressFor,
  type BaseUrl,
  HTTP_LIMITS,
  isOpenToOthers,
  type Listening,
  listenOn,
} from './http/connections.js'
import { createEndpoints } from './http/endpoints.js'
import { createFaults, withFailures } from './http/faults.js'
import { createInProcessFetch } from './http/in-process-fetch.js'
import { type KeyLookup, openKeyLookup } from './http/key-lookup.js'
import { BodyMemory } from './http/request-body.js'
import { PREVIEW_MODELS } from './models/served-model.js'
import type { Service, ServiceOptions } from './options.js'
import { createReferenceFetch } from './references/reference-fetch.js'
import { createReferenceLoader } from './references/reference-loader.js'
import { createMemoryRateLimiter } from './rules/rate.js'
import type { Store } from './store/index.js'
import { openSqliteStore } from './store/sqlite/index.js'
import { createErrorLog } from './worker/log.js'
import { Retention } from './worker/retention.js'
import { CREATE_GRACE_MS, createWorker, type Worker } from './worker/worker.js'

/** Base of output URLs while the service neither listens nor has a public URL. */
const PLACEHOLDER_URL = 'http://localhost'
const BODIES_IN_FLIGHT = 4
/** Time limit for all steps of closing, after the time for answers to creates. */
const MAX_CLOSE_MS = 2_000
/** Time that a removal of old files in progress has to end. */
const MAX_SWEEP_END_MS = 1_000

/** What the parts of a service use. */
interface Node {
  readonly options: ServiceOptions
  readonly store: Store
  readonly storage: Storage
  readonly folders: DataFolders
  readonly baseUrl: BaseUrl
  onError(error: unknown): void
}

/** Throws `RushesError` (usage) when the data folder cannot be used, or a later version wrote it. */
export async function createService(given: ServiceOptions): Promise<Service> {
  const { clock, metrics, role = 'all', trustedProxies = [], log = () => {} } = given
  const faults = given.faults && createFaults(given.faults, clock, (text) => log(`fault: ${text}`))
  const options = faults === undefined ? given : { ...given, engine: withFailures(given.engine, faults) }
  const publicUrl = options.publicUrl?.replace(/\/+$/, '')
  let listening: Listening | undefined
  let closing: Promise<void> | undefined
  let isDraining = false
  const isClosing = () => closing !== undefined
  const onError = createErrorLog(log, clock)
  const { folders, opened } = await openData(options.dataFolder, (path) => openDatabase(options, path))
  const { store, keys } = opened
  const storage = options.storage ?? createLocalStorage(folders.files)
  const baseUrl: BaseUrl = (request) =>
    publicUrl ?? (request ? addressFor(request, listening) : listening?.url) ?? PLACEHOLDER_URL
  const node: Node = { options, folders, onError, store, storage, baseUrl }
  metrics?.observeQueue(store)
  const rendering = createRendering(
    node,
    () => !isOpenToOthers({ host: listening?.host, publicUrl, trustedProxies, role }),
  )
  const isReady = createReadiness(
    [store.checkWritable, ...(storage.check ? [storage.check] : [])],
    () => isDiskFull(options.dataFolder),
    clock,
  )
  const app = await createApp({
    ...(role !== 'worker' && createApi(node, keys.find, rendering.worker)),
    faults,
    clock,
    metrics,
    onError,
    trustedProxies,
    isReady: async () => !isClosing() && (await isReady()),
    limits: { ...HTTP_LIMITS, ...options.httpLimits },
    bodyLimitBytes: options.bodyLimitBytes ?? MAX_BODY_BYTES,
    isDraining: () => isDraining,
  })

  async function closeParts(grace: Parameters<Worker['close']>[0]): Promise<void> {
    store.stopWaiting()
    await Promise.all([
      closeApp(app, clock),
      rendering.close(grace),
      options.engine.close?.(),
      options.thumbnailEngine?.close?.(),
      metrics?.close(),
    ])
    await store.close()
    storage.close?.()
  }

  return {
    apiKey: keys.newKey,
    console: opened.console,
    fetch: createInProcessFetch({ app, isClosed: isClosing }),
    async listen(address) {
      listening = await listenOn(app, address)
      return { url: listening.url }
    },
    startRendering(claims) {
      if (role !== 'api') rendering.start(claims)
    },
    findProblem: (id, mustExist) => findProblem(node, id, mustExist),
    async close({ drain = false, ...grace } = {}) {
      isDraining ||= drain
      const limitMs = (grace.graceMs ?? CREATE_GRACE_MS) + MAX_CLOSE_MS
      closing ??= settlesWithin(limitMs, closeParts(grace).catch(onError), clock).then(() => {})
      await closing
    },
  }
}

/** Opens the database, with the first account, its key and the first user when they are new. */
async function openDatabase(options: ServiceOptions, path: string) {
  const { clock, role, ephemeralKey = false } = options
  const store = await openStore(options, path)
  try {
    // A worker creates no key, since no user would see it.
    const keys =
      role === 'worker'
        ? { newKey: undefined, find: store.findKey }
        : await openKeyLookup(store, clock.now(), ephemeralKey)
    const console =
      options.console === undefined || role === 'worker'
        ? undefined
        : await (await import('./web/sessions.js')).startConsole(
            store,
            clock.now(),
            keys.newKey !== undefined,
          )
    return { store, keys, console }
  } catch (error) {
    await store.close()
    throw error
  }
}

/** Loads the driver of PostgreSQL only if it is needed. */
async function openStore({ databaseUrl, clock }: ServiceOptions, path: string): Promise<Store> {
  if (databaseUrl === undefined) return openSqliteStore(path, clock)
  const { openPostgresStore } = await import('./store/postgres/index.js')
  return await openPostgresStore(databaseUrl, { clock })
}

/** The routes of the API with their limits, and those of the console. */
function createApi(
  { options, store, storage, baseUrl, onError }: Node,
  findKey: KeyLookup['find'],
  worker: Worker,
) {
  const { clock, bodyLimitBytes = MAX_BODY_BYTES, publicUrl, console: assets } = options
  const { files } = storage
  const served = options.models ?? PREVIEW_MODELS
  const models = served.map(({ document }) => document)
  const rateLimiter = options.rateLimiter ?? store.rateLimiter ?? createMemoryRateLimiter(clock)
  const endpoints = createEndpoints({
    store,
    documents: models,
    clock,
    rateLimiter,
    worker,
    findKey,
    files,
    onError,
    carriedBy: (document) => served.find((each) => each.document === document)?.carried,
    onCharged: options.metrics?.countCredits,
  })
  const bodyMemory = new BodyMemory(BODIES_IN_FLIGHT * bodyLimitBytes)
  const api = { endpoints, worker, store, files, models, baseUrl, bodyMemory }
  const console = assets && {
    ...api,
    assets,
    clock,
    publicUrl,
    onError,
    rateLimiter,
    passwords: options.passwords,
    thumbnailEngine: options.thumbnailEngine,
  }
  return {
    api,
    // Loaded only where there are pages: a command with `--local` has none.
    console:
      console && (async (app: FastifyInstance) => (await import('./web/index.js')).addPages(app, console)),
  }
}

const FOREIGN_FILES =
  'No files are removed: the folder or bucket belongs to another database. ' +
  `To let this database own them, for example after a restore, empty the file ${OWNER_KEY} there.`

/** The worker, the loader of reference images, and the removal of old files. */
function createRendering({ options, store, storage, folders, onError }: Node, privateAllowed: () => boolean) {
  const { engine, clock, concurrency, metrics, retainMs, env = {}, models = PREVIEW_MODELS } = options
  const { files } = storage
  const { modelOf } = engine
  const names = models.map(({ document: { name } }) => name)
  const isWorker = options.role === 'worker'
  const fetch = createReferenceFetch({ privateAllowed, clock, env })
  const worker = createWorker({
    store,
    clock,
    concurrency,
    timeRender: metrics?.timeRender,
    onError,
    engine,
    models,
    outputs: files,
    workFolder: folders.work,
    // A worker may be beside the servers of its own models alone.
    modelOf:
      modelOf && isWorker
        ? async (run) => (names.includes(run.model) ? await modelOf(run) : undefined)
        : modelOf,
    onUnserved: isWorker ? undefined : options.log,
    references: createReferenceLoader({ files, fetch, clock, findOutput: store.findOutput }),
  })
  const retention = new Retention({
    store,
    storage,
    clock,
    retainMs,
    work: folders.work,
    onError,
    onForeign: () => options.log?.(FOREIGN_FILES),
  })
  return {
    worker,
    start(claims: Parameters<Service['startRendering']>[0]) {
      worker.start(claims)
      retention.start()
    },
    /** Returns unfinished renders to the queue. */
    close: (grace: Parameters<Worker['close']>[0]) =>
      Promise.all([
        worker.close(grace).catch(onError),
        fetch.close(),
        // A storage that does not answer must not delay the exit.
        settlesWithin(MAX_SWEEP_END_MS, retention.close(), clock),
      ]),
  }
}

async function findProblem(
  { store, options: { engine, models = [] } }: Node,
  id: string,
  mustExist = false,
): Promise<string | undefined> {
  const run = await store.findModelOf(id)
  if (run === undefined) return undefined
  const model = await (engine.modelOf?.(run) ?? models.find(({ document }) => document.name === run.model))
  if (model !== undefined) return model.problem
  return mustExist ? `This service does not have its model ${run.model}.` : undefined
}
