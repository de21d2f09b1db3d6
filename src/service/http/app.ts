/** The service's HTTP. It knows no rules: they come in as functions, and what they throw goes out by `answers.ts`. */
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

/** Longer than Node's header limit, so that any address that arrives is a plain 404 and no special case. */
const MAX_PARAMETER_LENGTH = 65_536

export interface AppOptions {
  readonly runs: RunRoutes
  readonly outputs: OutputRoutes
  readonly operations: HealthRoutes
  readonly logging?: Logging | undefined
  readonly limits?: HttpLimits
  /** Addresses and networks whose `X-Forwarded-For` is believed. */
  readonly trustedProxies?: readonly string[] | undefined
  /** Undefined: nothing goes wrong on purpose. */
  readonly faults?: Faults | undefined
  onError(error: unknown): void
}

export async function createApp(options: AppOptions): Promise<FastifyInstance> {
  const { runs, outputs, operations, faults, logging, limits = HTTP_LIMITS, onError } = options
  const { trustedProxies = [] } = options
  const app = fastify({
    logger: loggerOf(logging),
    // Its own lines about requests hold addresses.
    logController: new LogController({ disableRequestLogging: true }),
    // One logger for all: a child for every request costs more than most requests.
    childLoggerFactory: (logger) => logger,
    trustProxy: trustedProxies.length === 0 ? false : createNetworkMatcher(trustedProxies),
    connectionTimeout: limits.idleMs,
    requestTimeout: limits.requestMs,
    http: {
      maxHeaderSize: limits.headerBytes,
      headersTimeout: limits.headersMs,
      connectionsCheckingInterval: limits.checkIntervalMs,
    },
    // Whoever is still connected while the service closes gets answers, not a 503 of another shape.
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
    // What is still to come of a body that came too slowly is not waited for.
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
