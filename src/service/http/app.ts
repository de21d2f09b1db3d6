/** The service's HTTP. The rules come in as functions; what they throw is sent by `error-responses.ts`. */
import { type FastifyInstance, fastify, LogController } from 'fastify'
import type { Faults } from '../faults/index.js'
import { createNetworkMatcher } from '../rules/networks.js'
import { HTTP_LIMITS, type HttpLimits } from './connection-limits.js'
import { errorHeaders, refusalOf, sendNoRoute, sendRawRefusal, sendRefusal } from './error-responses.js'
import { addFaultHooks } from './fault-hooks.js'
import { addHealthRoutes, type HealthRoutes } from './health-routes.js'
import { type Logging, loggerOf, logRequests } from './logging.js'
import { addOutputRoutes, type OutputRoutes } from './output-routes.js'
import { addRunRoutes, type RunRoutes } from './run-routes.js'

/** Longer than Node's header limit, so that a long path is a plain 404 like any other. */
const MAX_PARAMETER_LENGTH = 65_536

export interface AppOptions {
  readonly runs: RunRoutes
  readonly outputs: OutputRoutes
  readonly operations: HealthRoutes
  readonly logging?: Logging | undefined
  readonly limits?: HttpLimits
  /** Addresses and networks whose `X-Forwarded-For` is trusted. */
  readonly trustedProxies?: readonly string[] | undefined
  /** Errors on demand. */
  readonly faults?: Faults | undefined
  onError(error: unknown): void
}

export async function createApp(options: AppOptions): Promise<FastifyInstance> {
  const { runs, outputs, operations, faults, logging, limits = HTTP_LIMITS, onError } = options
  const { trustedProxies = [] } = options
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
    },
    // While the service closes, open connections get normal responses, not Fastify's 503 of another shape.
    return503OnClosing: false,
    routerOptions: { maxParamLength: MAX_PARAMETER_LENGTH },
    frameworkErrors: (error, _request, reply) => {
      sendRefusal(reply, refusalOf(error.code === 'FST_ERR_BAD_URL' ? { statusCode: 404 } : error))
    },
    clientErrorHandler: sendRawRefusal,
  })
  app.server.maxConnections = limits.connections
  logRequests(app, logging)
  app.setErrorHandler((error, _request, reply) => {
    const refusal = refusalOf(error)
    if (refusal.code === 'internal_error') onError(error)
    // Do not wait for the rest of a body that is sent too slowly.
    if (refusal.code === 'request_timeout') reply.header('connection', 'close')
    return sendRefusal(reply.headers(errorHeaders(error)), refusal)
  })
  app.setNotFoundHandler(sendNoRoute)
  if (faults !== undefined) addFaultHooks(app, faults)
  await app.register(addRunRoutes, runs)
  await app.register(addOutputRoutes, outputs)
  await app.register(addHealthRoutes, operations)
  await app.ready()
  return app
}
