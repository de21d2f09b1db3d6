/** The service's HTTP. It knows no rules: they come in as functions, and what they throw goes out by `answers.ts`. */
import { type FastifyInstance, fastify, LogController } from 'fastify'
import type { Faults } from '../faults/index.js'
import { createNetworkMatcher } from '../rules/networks.js'
import { HTTP_LIMITS, type HttpLimits } from './connection-limits.js'
import { answerRawly, headersOf, noRoute, refusalOf, refuse } from './error-responses.js'
import { addFaults } from './fault-hooks.js'
import { type OperationsRoutes, operationsRoutes } from './health-routes.js'
import { type Logging, loggerOf, logRequests } from './logging.js'
import { type OutputRoutes, outputRoutes } from './output-routes.js'
import { type RunsRoutes, runsRoutes } from './run-routes.js'

/** Longer than Node's header limit, so that any address that arrives is a plain 404 and no special case. */
const LONGEST_PARAMETER = 65_536

export interface AppOptions {
  readonly runs: RunsRoutes
  readonly outputs: OutputRoutes
  readonly operations: OperationsRoutes
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
    connectionTimeout: limits.standstillMs,
    requestTimeout: limits.requestMs,
    http: {
      maxHeaderSize: limits.headerBytes,
      headersTimeout: limits.headersMs,
      connectionsCheckingInterval: limits.lookEveryMs,
    },
    // Whoever is still connected while the service closes gets answers, not a 503 of another shape.
    return503OnClosing: false,
    routerOptions: { maxParamLength: LONGEST_PARAMETER },
    frameworkErrors: (error, _request, reply) => {
      refuse(reply, refusalOf(error.code === 'FST_ERR_BAD_URL' ? { statusCode: 404 } : error))
    },
    clientErrorHandler: answerRawly,
  })
  app.server.maxConnections = limits.connections
  logRequests(app, logging)
  app.setErrorHandler((error, _request, reply) => {
    const refusal = refusalOf(error)
    if (refusal.code === 'internal_error') onError(error)
    // What is still to come of a body that came too slowly is not waited for.
    if (refusal.code === 'request_timeout') reply.header('connection', 'close')
    return refuse(reply.headers(headersOf(error)), refusal)
  })
  app.setNotFoundHandler(noRoute)
  if (faults !== undefined) addFaults(app, faults)
  await app.register(runsRoutes, runs)
  await app.register(outputRoutes, outputs)
  await app.register(operationsRoutes, operations)
  await app.ready()
  return app
}
