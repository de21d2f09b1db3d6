/**
 * The local service: the published API (docs/service.md) with a renderer on this machine. `rushes serve` runs it on a
 * port, `--local` runs it inside the command's process, and tests run it without a port.
 *
 *   http/         Fastify: routes and responses, without rules
 *   rules/        pure: keys, rate limit, request bodies, prices, addresses
 *   endpoints.ts  the two endpoints without HTTP
 *   web/          the console: its pages and sign-in; their components are in src/console
 *   node.ts       wires the parts that answer requests and the parts that render runs
 *   store/        the database: a small contract, implemented for SQLite and PostgreSQL
 *   files/        outputs and inputs: a contract, implemented for folders and S3
 *   rate/         the rate limiter: a contract, implemented in memory and in PostgreSQL
 *   worker/       leases, the queue, and one render
 *   references/   the reference images of an input
 *   models/       the documents of the models, and the engine of each
 *   engines/      the types of engines that render outputs
 *   metrics.ts    Prometheus metrics, on a separate port
 *
 * The rate limiter in memory counts the requests of its process; the limiter in PostgreSQL counts all nodes. Credits
 * and quotas count across all processes that use the same data.
 */
import { settlesWithin } from '../host/abort.js'
import { isDiskFull } from '../host/directories.js'
import { openData } from './data-folders.js'
import { StorageUnavailable } from './files/contract.js'
import { createLocalStorage } from './files/local-files.js'
import { closeApp, createApp } from './http/app.js'
import { HTTP_LIMITS } from './http/connections.js'
import { createFaults, withFailures } from './http/faults.js'
import { createInProcessFetch } from './http/in-process-fetch.js'
import { addressFor, isOpenToOthers, type Listening, listenOn } from './http/listening.js'
import { type KeyLookup, openKeyLookup } from './key-lookup.js'
import { createErrorLog, type Log, silentLog } from './log.js'
import { createApi, createReadiness, createRendering, type NodeParts, type Rendering } from './node.js'
import type { ConsoleStart, LocalOutputFile, Service, ServiceOptions } from './service.js'
import { withBudgetCheck } from './store/calls.js'
import type { RunningStore } from './store/contract.js'
import { openSqliteStore } from './store/sqlite/index.js'
import { outputKey, outputOfUrl } from './stored-run.js'
import { startConsole } from './web/sessions.js'
import { CREATE_GRACE_MS, type CreateGrace } from './worker/worker.js'

/** Base of output URLs while the service neither listens nor has a public URL. */
const PLACEHOLDER_URL = 'http://localhost'

/** Time limit for all steps of closing, after the time for answers to creates. */
const MAX_CLOSE_MS = 2_000

/** Loads the driver of PostgreSQL only if it is needed. */
async function openStore({ databaseUrl, clock }: ServiceOptions, path: string): Promise<RunningStore> {
  if (databaseUrl === undefined) return withBudgetCheck(openSqliteStore(path, clock))
  const { openPostgresStore } = await import('./store/postgres/index.js')
  return withBudgetCheck(await openPostgresStore(databaseUrl, { clock }))
}

interface Opened {
  readonly store: RunningStore
  readonly keys: KeyLookup
  readonly console: ConsoleStart | undefined
}

async function openDatabase(options: ServiceOptions, path: string): Promise<Opened> {
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
        : await startConsole(store, clock.now(), keys.newKey !== undefined)
    return { store, keys, console }
  } catch (error) {
    await store.close()
    throw error
  }
}

interface Running extends NodeParts {
  readonly opened: Opened
  readonly rendering: Rendering
  closeHttp(): Promise<void>
  readonly grace: CreateGrace
}

/** Throws `RushesError` (usage) when the data folder cannot be used, or a later version wrote it. */
export async function createService(given: ServiceOptions): Promise<Service> {
  const {
    clock,
    logging,
    metrics,
    role = 'all',
    trustedProxies = [],
    log = () => {},
    onFault = () => {},
  } = given
  const faults = given.faults && createFaults(given.faults, clock, onFault)
  const options = faults === undefined ? given : { ...given, engine: withFailures(given.engine, faults) }
  const publicUrl = options.publicUrl?.replace(/\/+$/, '')
  let listening: Listening | undefined
  let closing: Promise<void> | undefined
  let draining = false
  const isClosing = () => closing !== undefined

  /** Replaced by Fastify's logger once the app exists. */
  let logger: Log = silentLog
  const events: Log = {
    error: (fields, message) => logger.error(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    info: (fields, message) => logger.info(fields, message),
    debug: (fields, message) => logger.debug(fields, message),
  }
  const onError = createErrorLog(log, { events, isClosing })
  const { folders, opened } = await openData(options.dataFolder, (path) => openDatabase(options, path))
  const { keys } = opened
  const node: NodeParts = {
    ...{ options, folders, events, onError },
    store: opened.store,
    storage: options.storage ?? createLocalStorage(folders.files, clock),
    baseUrl: (request) =>
      publicUrl ?? (request ? addressFor(request, listening) : listening?.url) ?? PLACEHOLDER_URL,
  }
  const { store, storage } = node
  metrics?.observeQueue(store)
  const rendering = createRendering(
    node,
    () => !isOpenToOthers({ host: listening?.host, publicUrl, trustedProxies, role }),
  )
  const { worker } = rendering
  const apiParts = { findKey: keys.find, rateLimiter: opened.store.rateLimiter, worker }
  const api = role === 'worker' ? undefined : createApi(node, apiParts)
  const isDataFull = () => isDiskFull(options.dataFolder)
  const checks = { checkDatabase: store.checkWritable, checkStorage: storage.check }
  const isWritable = createReadiness({ ...checks, clock, isDiskFull: isDataFull })
  const app = await createApp({
    api: api?.routes,
    console: api?.console,
    faults,
    isReady: async () => !isClosing() && (await isWritable()),
    limits: { ...HTTP_LIMITS, ...options.httpLimits },
    isDraining: () => draining,
    ...{ logging, clock, trustedProxies, metrics, onError },
  })
  logger = app.log
  return {
    apiKey: keys.newKey,
    console: opened.console,
    fetch: createInProcessFetch({
      app,
      isClosed: isClosing,
      prefix: publicUrl === undefined ? '' : new URL(publicUrl).pathname.replace(/\/$/, ''),
    }),
    async listen(address) {
      listening = await listenOn(app, address)
      return { url: listening.url }
    },
    startRendering(claims) {
      if (role !== 'api') rendering.start(claims)
    },
    findProblem: (id, mustExist) => findProblem(node, id, mustExist),
    findOutputFile: (url) => findOutputFile(node, url),
    async close({ drain = false, ...grace } = {}) {
      draining ||= drain
      const closed = () =>
        closeAll({ ...node, opened, rendering, closeHttp: () => closeApp(app, clock), grace }).catch(onError)
      closing ??= settlesWithin((grace.graceMs ?? CREATE_GRACE_MS) + MAX_CLOSE_MS, closed(), clock).then(
        () => {},
      )
      await closing
    },
  }
}

async function closeAll({
  options,
  opened,
  store,
  storage,
  rendering,
  closeHttp,
  grace,
}: Running): Promise<void> {
  const { engine, thumbnailEngine, metrics } = options
  opened.store.stopWaiting()
  await Promise.all([
    closeHttp(),
    rendering.close(grace),
    engine.close?.(),
    thumbnailEngine?.close?.(),
    metrics?.close(),
  ])
  await store.close()
  storage.close?.()
}

async function findProblem(
  { store, options: { engine, models = [] } }: NodeParts,
  id: string,
  mustExist = false,
): Promise<string | undefined> {
  const run = await store.findModelOf(id)
  if (run === undefined) return undefined
  const model = await (engine.modelOf?.(run) ?? models.find(({ document }) => document.name === run.model))
  if (model !== undefined) return model.problem
  return mustExist ? `This service does not have its model ${run.model}.` : undefined
}

async function findOutputFile(
  { store, storage }: NodeParts,
  url: string,
): Promise<LocalOutputFile | undefined> {
  const named = outputOfUrl(url)
  const output = named && (await store.findOutput(named.token, named.name))
  if (output === undefined) return undefined
  const path = storage.files.pathOf?.(outputKey(output))
  if (path === undefined) return undefined
  const found = await storage.files.find(outputKey(output)).catch((error) => {
    // Throw the disk's own error, since the terminal shows it.
    throw error instanceof StorageUnavailable ? (error.cause ?? error) : error
  })
  return found && { ...output, path }
}
