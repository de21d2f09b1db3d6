/**
 * The service's HTTP server: settings, hooks and routes, and health checks. The rules throw `Refusal`s, and
 * `error-responses.ts` sends them.
 */
import { type FastifyInstance, fastify } from 'fastify'
import { settlesWithin } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import { writeJson } from '../../protocol/json.js'
import { percentDecoded } from '../../protocol/text.js'
import { createNetworkMatcher } from '../rules/networks.js'
import { Refusal } from '../rules/refusal.js'
import { type ApiRoutes, addOpenapiRoute, addOutputRoutes, addRunRoutes } from './api-routes.js'
import { closeAfter, drain, type HttpLimits } from './connections.js'
import { refusalOf, sendNotFound, sendRefusal } from './error-responses.js'
import { addFaultHooks, type Faults } from './faults.js'
import type { Metrics } from './metrics.js'

/** Longer than Node's header limit, so that the router handles a long path as an ordinary 404. */
const MAX_PARAMETER_LENGTH = 65_536

/** `Retry-After` of every 503, in seconds. */
const RETRY_AFTER_S = 5

interface AppOptions {
  /** Undefined for a node that only renders. */
  readonly api?: ApiRoutes
  /** Adds the pages of the console. If undefined, the service has none. */
  readonly console?: ((app: FastifyInstance) => Promise<void>) | undefined
  readonly limits: HttpLimits
  readonly bodyLimitBytes: number
  /** IP addresses and networks (CIDR) of proxies whose `X-Forwarded-For` is trusted. */
  readonly trustedProxies?: readonly string[] | undefined
  /** Injects errors into responses (`--fault`). */
  readonly faults?: Faults | undefined
  readonly metrics?: Metrics | undefined
  readonly clock: Clock
  /** Whether to drain connections before closing, because other nodes take over: see `drain` in `connections.ts`. */
  isDraining(): boolean
  /**
   * Resolves to false, or rejects, while the service cannot accept requests: the database fails, or the service closes.
   */
  isReady(): Promise<boolean>
  onError(error: unknown): void
}

export async function createApp(options: AppOptions): Promise<FastifyInstance> {
  const { api, faults, limits, clock, onError } = options
  const { trustedProxies = [], metrics, isDraining, isReady } = options
  const app = fastify({
    trustProxy: trustedProxies.length === 0 ? false : createNetworkMatcher(trustedProxies),
    bodyLimit: options.bodyLimitBytes,
    connectionTimeout: limits.idleMs,
    requestTimeout: limits.requestMs,
    http: {
      maxHeaderSize: limits.headerBytes,
      headersTimeout: limits.headersMs,
      connectionsCheckingInterval: limits.checkIntervalMs,
    },
    // While the service closes, open connections get normal responses. Fastify's 503 has another format.
    return503OnClosing: false,
    routerOptions: { maxParamLength: MAX_PARAMETER_LENGTH },
    // An id that cannot be decoded is looked up like any other.
    rewriteUrl: ({ url = '/' }) => (percentDecoded(url) === url ? url.replaceAll('%', '%25') : url),
    frameworkErrors: (error, _request, reply) => void sendRefusal(reply, refusalOf(error)),
  })
  // Inputs may have integers that `JSON.stringify` refuses.
  app.setReplySerializer((payload) => writeJson(payload))
  app.server.maxConnections = limits.connections
  app.addHook('onResponse', async ({ routeOptions }, { statusCode }) =>
    metrics?.countRequest(routeOptions.url, statusCode),
  )
  app.addHook('preClose', async () => {
    if (isDraining()) await drain(app, clock)
  })
  // Close the connection of a client that has no valid key or still sends its body: others may need the connection.
  app.addHook('onSend', async ({ raw }, reply) => {
    if (reply.statusCode === 401 || raw.complete === false) closeAfter(reply, clock)
  })
  app.setErrorHandler((error, request, reply) => {
    const refusal = refusalOf(error, request.routeOptions.bodyLimit)
    if (refusal !== error && refusal.status >= 500) onError(error)
    if (refusal.status === 503) reply.header('retry-after', RETRY_AFTER_S)
    return sendRefusal(reply, refusal)
  })
  app.setNotFoundHandler(sendNotFound)
  if (faults !== undefined) addFaultHooks(app, faults)
  await app.register(addHealthRoutes, { isReady })
  if (api !== undefined) {
    await app.register(addRunRoutes, api)
    await app.register(addOutputRoutes, api)
    await app.register(addOpenapiRoute, api)
  }
  if (options.console !== undefined) await app.register(options.console)
  await app.ready()
  return app
}

/** Time for responses in progress when the service closes. */
const RESPONSE_GRACE_MS = 3_000

export async function closeApp(app: FastifyInstance, clock: Clock): Promise<void> {
  const closed = app.close()
  if (!(await settlesWithin(RESPONSE_GRACE_MS, closed, clock))) app.server.closeAllConnections()
  await closed
}

const HEALTH_PATH = '/healthz'
const READY_PATH = '/readyz'

/** Routes of health checks. They need no key, have no rate limit, and return no data about runs. */
async function addHealthRoutes(
  app: FastifyInstance,
  { isReady }: { isReady(): Promise<boolean> },
): Promise<void> {
  app.addHook('onSend', async (_request, reply) => void reply.header('cache-control', 'no-store'))
  app.get(HEALTH_PATH, async () => ({ status: 'ok' }))
  app.get(READY_PATH, async () => {
    if (!(await isReady().catch(() => false))) throw new Refusal('not_ready')
    return { status: 'ready' }
  })
}

/** Time limit of the checks. A slower write means that the database is locked; a slower storage counts as unavailable. */
const CHECK_LIMIT_MS = 1_000
/** Time to reuse a result: a check needs no key, but writes to the disk and calls the storage. */
const CACHED_MS = 1_000

/** Returns a function that tells whether the service can accept requests: the disk has space, and no check rejects. */
export function createReadiness(
  checks: readonly (() => Promise<void>)[],
  isDiskFull: () => boolean,
  clock: Clock,
): () => Promise<boolean> {
  let checkedAtMs = Number.NEGATIVE_INFINITY
  let last: Promise<boolean> = Promise.resolve(false)
  return () => {
    if (clock.monotonic() - checkedAtMs < CACHED_MS) return last
    checkedAtMs = clock.monotonic()
    last = isDiskFull()
      ? Promise.resolve(false)
      : settlesWithin(CHECK_LIMIT_MS, Promise.all(checks.map((check) => check())), clock).catch(() => false)
    return last
  }
}
