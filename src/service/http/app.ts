/** The service's HTTP. The rules come in as functions; what they throw is sent by `error-responses.ts`. */
import { type FastifyInstance, fastify, LogController } from 'fastify'
import type { Clock } from '../../host/clock.js'
import type { Faults } from '../faults/index.js'
import { createNetworkMatcher } from '../rules/networks.js'
import { closeAfter } from './close-connection.js'
import { HTTP_LIMITS, type HttpLimits } from './connection-limits.js'
import { addConsoleRoutes, type ConsoleRoutes } from './console/index.js'
import { drain } from './drain.js'
import { createNoRoute, refusalOf, sendNoApi, sendRawRefusal, sendRefusal } from './error-responses.js'
import { addFaultHooks } from './fault-hooks.js'
import { addHealthRoutes, type HealthRoutes } from './health-routes.js'
import { type Logging, loggerOf, logRequests } from './logging.js'
import { type HttpMetrics, observeRequests } from './observe-requests.js'
import { addOpenapiRoute, type OpenapiRoute } from './openapi-route.js'
import { addOutputRoutes, type OutputRoutes } from './output-routes.js'
import { limitPipelining } from './pipelining.js'
import { addRunRoutes, type RunRoutes } from './run-routes.js'
import { refuseUnsupported } from './unsupported-requests.js'

/** Longer than Node's header limit, so that a long path is a plain 404 like any other. */
const MAX_PARAMETER_LENGTH = 65_536

/** For every 503. */
const RETRY_AFTER_S = 5

/** The published interface. */
export interface ApiRoutes {
  readonly runs: RunRoutes
  readonly outputs: OutputRoutes
  readonly openapi: OpenapiRoute
  /** Undefined: without a console. */
  readonly console: ConsoleRoutes | undefined
}

export interface AppOptions {
  /** Undefined for a node that only renders. */
  readonly api: ApiRoutes | undefined
  readonly operations: HealthRoutes
  readonly logging?: Logging | undefined
  readonly limits?: HttpLimits
  /** Addresses and networks whose `X-Forwarded-For` is trusted. */
  readonly trustedProxies?: readonly string[] | undefined
  /** Errors on demand. */
  readonly faults?: Faults | undefined
  readonly metrics?: HttpMetrics | undefined
  readonly clock: Pick<Clock, 'alarm' | 'sleep'>
  /** Whether the service is stopped for others to take over: see `drain.ts`. */
  isDraining(): boolean
  onError(error: unknown): void
}

export async function createApp(options: AppOptions): Promise<FastifyInstance> {
  const { api, operations, faults, logging, limits = HTTP_LIMITS, clock, onError } = options
  const { trustedProxies = [], metrics, isDraining } = options
  const app = fastify({
    logger: loggerOf(logging),
    // Fastify's own lines about requests contain URLs.
    logController: new LogController({ disableRequestLogging: true }),
    trustProxy: trustedProxies.length === 0 ? false : createNetworkMatcher(trustedProxies),
    connectionTimeout: limits.idleMs,
    requestTimeout: limits.requestMs,
    http: {
      maxHeaderSize: limits.headerBytes,
      headersTimeout: limits.headersMs,
      connectionsCheckingInterval: limits.checkIntervalMs,
      // Node's own 400 has no body.
      requireHostHeader: false,
    },
    // While the service closes, open connections get normal responses, not Fastify's 503 of another shape.
    return503OnClosing: false,
    // A body is what it is: no text becomes a number, and no unknown field disappears.
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, allowUnionTypes: true } },
    routerOptions: { maxParamLength: MAX_PARAMETER_LENGTH },
    // An id with a wrong percent sign is looked up like any other.
    rewriteUrl: ({ url = '/' }) => (isDecodable(url) ? url : url.replaceAll('%', '%25')),
    frameworkErrors: (error, _request, reply) => void sendRefusal(reply, refusalOf(error)),
    clientErrorHandler: sendRawRefusal,
  })
  limitPipelining(app)
  refuseUnsupported(app)
  app.server.maxConnections = limits.connections
  logRequests(app, logging)
  app.addHook('preClose', async () => {
    if (isDraining()) await drain(app, clock)
  })
  if (metrics !== undefined) observeRequests(app, api?.runs.bodyLimits.budget, metrics)
  // A caller without a key, or one that is answered while it still sends, does not keep a connection that others could use.
  app.addHook('onSend', async ({ raw }, reply) => {
    if (reply.statusCode === 401 || raw.complete === false) closeAfter(reply, clock)
  })
  app.setErrorHandler((error, _request, reply) => {
    const refusal = refusalOf(error)
    if (refusal !== error && refusal.status >= 500) onError(error)
    metrics?.countRefusal(refusal)
    if (refusal.status === 503) reply.header('retry-after', RETRY_AFTER_S)
    return sendRefusal(reply, refusal)
  })
  app.setNotFoundHandler(api === undefined ? sendNoApi : createNoRoute(app))
  if (faults !== undefined) addFaultHooks(app, faults)
  await app.register(addHealthRoutes, operations)
  if (api !== undefined) {
    await app.register(addRunRoutes, api.runs)
    await app.register(addOutputRoutes, api.outputs)
    await app.register(addOpenapiRoute, api.openapi)
    if (api.console !== undefined) await app.register(addConsoleRoutes, api.console)
  }
  await app.ready()
  return app
}

function isDecodable(url: string): boolean {
  try {
    return !url.includes('%') || decodeURIComponent(url) !== ''
  } catch {
    return false
  }
}
