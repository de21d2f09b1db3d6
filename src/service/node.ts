/** Wires the parts of one node: request handling, rendering, and the readiness check. */
import type { FastifyInstance } from 'fastify'
import { settlesWithin } from '../host/abort.js'
import type { Clock } from '../host/clock.js'
import { MAX_BODY_BYTES } from '../protocol/limits.js'
import { KINDS, type ModelDocument } from '../protocol/models.js'
import type { DataFolders } from './data-folders.js'
import { createEndpoints } from './endpoints.js'
import { OWNER_KEY, type Storage } from './files/contract.js'
import type { ApiRoutes } from './http/api-routes.js'
import { HTTP_LIMITS } from './http/connections.js'
import type { BaseUrl } from './http/listening.js'
import { createBodyMemory } from './http/request-body.js'
import type { KeyLookup } from './key-lookup.js'
import type { Log } from './log.js'
import { PREVIEW_MODELS } from './models/served-model.js'
import { createMemoryRateLimiter, type RateLimiter } from './rate/rate-limiter.js'
import { createReferenceFetch } from './references/reference-fetch.js'
import { createReferenceLoader } from './references/reference-loader.js'
import { Retention } from './retention.js'
import { createPasswords } from './rules/credentials.js'
import type { ServiceOptions } from './service.js'
import type { Claims, ServiceStore } from './store/contract.js'
import type { StoredRun } from './stored-run.js'
import { Sessions } from './web/sessions.js'
import { createThumbnails } from './web/thumbnails.js'
import { removeAbandonedFolders } from './worker/work-folders.js'
import { type CreateGrace, createWorker, type Worker } from './worker/worker.js'

/** Memory limit for all bodies in flight, as a number of bodies of the maximum size. */
const BODIES_IN_FLIGHT = 4

/** What all parts of a node use. */
export interface NodeParts {
  readonly options: ServiceOptions
  readonly store: ServiceStore
  readonly storage: Storage
  readonly folders: DataFolders
  readonly events: Log
  baseUrl: BaseUrl
  onError(error: unknown): void
}

interface ApiParts {
  readonly findKey: KeyLookup['find']
  /** Rate limiter of the database; undefined if the database has none. */
  readonly rateLimiter: RateLimiter | undefined
  readonly worker: Worker
}

export interface Api {
  readonly routes: ApiRoutes
  /** Adds the pages of the console. If undefined, the service has none. */
  readonly console: ((app: FastifyInstance) => Promise<void>) | undefined
}

/** Creates the endpoints with their limits, and the console. */
export function createApi(node: NodeParts, { findKey, worker, ...parts }: ApiParts): Api {
  const { options, store, storage, baseUrl, events, onError } = node
  const { clock, bodyLimitBytes = MAX_BODY_BYTES, publicUrl, console: assets } = options
  const { files } = storage
  const models = (options.models ?? PREVIEW_MODELS).map(({ document }) => document)
  const rateLimiter = options.rateLimiter ?? parts.rateLimiter ?? createMemoryRateLimiter(clock)
  const routes: ApiRoutes = {
    endpoints: createEndpoints({
      ...{ store, documents: models, clock, rateLimiter, worker, findKey, files, onError },
      ...(options.metrics && { onCharged: options.metrics.countCredits }),
      // Another node may have the models of a run that this one only accepts.
      ...((options.role ?? 'all') === 'all' && { onQueuedRun: reportUnserved(models, options.log, events) }),
    }),
    baseUrl,
    renderStateOf: worker.renderStateOf,
    bodyLimits: {
      maxBytes: bodyLimitBytes,
      pace: { ...HTTP_LIMITS, ...options.httpLimits },
      memory: createBodyMemory(BODIES_IN_FLIGHT * bodyLimitBytes),
      clock,
    },
    logPrompts: options.logging?.prompts ?? false,
    models,
    files,
    findOutput: store.findOutput,
  }
  const { thumbnailEngine, passwords = createPasswords() } = options
  const site = assets && {
    store,
    endpoints: routes.endpoints,
    storage,
    sessions: new Sessions({ store, clock, passwords, rateLimiter, onError }),
    thumbnails: createThumbnails({ clock, files, engine: thumbnailEngine, onError }),
    hasThumbnails: thumbnailEngine !== undefined,
    // Images first, as in the form.
    models: models.toSorted((one, other) => KINDS.indexOf(other.kind) - KINDS.indexOf(one.kind)),
    assets,
    bodyLimits: routes.bodyLimits,
    logPrompts: routes.logPrompts,
    clock,
    publicUrl,
    baseUrl,
    renderStateOf: worker.renderStateOf,
    outputsOrigin: createOutputsOrigin(files),
    onError,
  }
  return {
    routes,
    // Loaded only where there are pages: a command with `--local` has none.
    console: site && (async (app) => (await import('./web/index.js')).addPages(app, site)),
  }
}

/** Reports, once for each model, that a run stays queued because this service does not have its model. */
function reportUnserved(models: readonly ModelDocument[], log: ServiceOptions['log'], events: Log) {
  const known = new Set(models.map(({ name }) => name))
  return ({ id, model }: StoredRun) => {
    if (known.has(model)) return
    known.add(model)
    log?.(`${id} stays queued: this service does not have its model ${model}`)
    events.warn({ run: id, model }, 'run stays queued: this service does not have its model')
  }
}

/** Returns the origin that all outputs are redirected to; undefined if the service itself sends them. */
function createOutputsOrigin({ signedUrl }: Storage['files']): () => Promise<string | undefined> {
  let origin: string | undefined
  return async () => {
    if (signedUrl === undefined || origin !== undefined) return origin
    try {
      const request = { method: 'GET', contentType: 'image/png', contentDisposition: 'inline' } as const
      origin = new URL(await signedUrl('origin', request)).origin
    } catch {
      // Without credentials, no output can be read, so the page does not need the origin.
    }
    return origin
  }
}

const FOREIGN_FILES =
  'No files are removed: the folder or bucket belongs to another database. ' +
  `If this database is to own them, for example after a restore, make the file ${OWNER_KEY} there empty.`

/** Time that a sweep in progress has to end. */
const MAX_SWEEP_END_MS = 1_000

export interface Rendering {
  readonly worker: Worker
  start(claims: Claims | undefined): void
  /** Returns unfinished renders to the queue. */
  close(grace?: CreateGrace): Promise<void>
}

/**
 * Creates the worker, the loader of reference images, and the removal of old files. `mayFetchPrivate`:
 * whether reference images may be fetched from private addresses.
 */
export function createRendering(
  { options, store, storage, folders, events, onError }: NodeParts,
  mayFetchPrivate: () => boolean,
): Rendering {
  const { engine, clock, concurrency, metrics, retainMs, env = {}, models = PREVIEW_MODELS } = options
  const { files } = storage
  const fetch = createReferenceFetch({ privateAllowed: mayFetchPrivate, clock, env })
  const worker = createWorker({
    ...{ store, clock, concurrency, timeRender: metrics?.timeRender, log: events, onError },
    ...{ engine, models, outputs: files, workFolder: folders.work },
    references: createReferenceLoader({ files, fetch, clock, findOutput: store.findOutput }),
  })
  const retention = new Retention({
    ...{ store, storage, clock, retainMs, log: events, onError },
    onForeign() {
      options.log?.(FOREIGN_FILES)
      events.warn({}, FOREIGN_FILES)
    },
    removeWorkFolders: () => removeAbandonedFolders({ work: folders.work, store, clock, onError }),
  })
  return {
    worker,
    start(claims) {
      worker.start(claims)
      retention.start()
    },
    async close(grace) {
      await Promise.all([
        worker.close(grace).catch(onError),
        fetch.close(),
        // A storage that does not answer must not delay the exit.
        settlesWithin(MAX_SWEEP_END_MS, retention.close(), clock),
      ])
    },
  }
}

/**
 * Time limit of one check. A slower write means that the database is locked; a slower storage counts as unavailable.
 */
const LIMIT_MS = 1_000
/** Time to reuse a result: a check needs no key, but writes to the disk and calls the storage. */
const CACHED_MS = 1_000

interface ReadinessOptions {
  /** Rejects if the database cannot be written. */
  checkDatabase(): Promise<void>
  readonly clock: Clock
  isDiskFull(): boolean
  /** Rejects while files cannot be stored. Undefined for a storage that needs no check. */
  readonly checkStorage?: (() => Promise<void>) | undefined
}

/**
 * Returns a function that checks whether the service can accept requests: the disk has space, a database write
 * succeeds, and the storage responds.
 */
export function createReadiness({
  checkDatabase,
  clock,
  isDiskFull,
  checkStorage = async () => {},
}: ReadinessOptions): () => Promise<boolean> {
  let checkedAtMs = Number.NEGATIVE_INFINITY
  let last: Promise<boolean> = Promise.resolve(false)
  return () => {
    if (clock.monotonic() - checkedAtMs < CACHED_MS) return last
    checkedAtMs = clock.monotonic()
    last = isDiskFull()
      ? Promise.resolve(false)
      : settlesWithin(LIMIT_MS, Promise.all([checkDatabase(), checkStorage()]), clock).catch(() => false)
    return last
  }
}
