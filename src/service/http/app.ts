/** The service's HTTP. It knows no rules: they come in as functions, and what they throw goes out by `answers.ts`. */
import { type FastifyInstance, fastify } from 'fastify'
import type { Faults } from '../faults/index.js'
import { answerRawly, headersOf, noRoute, refusalOf, refuse } from './answers.js'
import { addFaults } from './faults.js'
import { type OutputRoutes, outputRoutes } from './outputs.js'
import { type RunsRoutes, runsRoutes } from './runs.js'

/** A connection on which nothing moves is given up. One that moves may take as long as it needs, uploads too. */
const STANDSTILL_MS = 120_000
/** Longer than Node's header limit, so that any address that arrives is a plain 404 and no special case. */
const LONGEST_PARAMETER = 65_536

export interface AppOptions {
  readonly runs: RunsRoutes
  readonly outputs: OutputRoutes
  /** Undefined: nothing goes wrong on purpose. */
  readonly faults?: Faults | undefined
  onError(error: unknown): void
}

export async function createApp({ runs, outputs, faults, onError }: AppOptions): Promise<FastifyInstance> {
  const app = fastify({
    logger: false,
    connectionTimeout: STANDSTILL_MS,
    // Whoever is still connected while the service closes gets answers, not a 503 of another shape.
    return503OnClosing: false,
    routerOptions: { maxParamLength: LONGEST_PARAMETER },
    frameworkErrors: (error, _request, reply) => {
      refuse(reply, refusalOf(error.code === 'FST_ERR_BAD_URL' ? { statusCode: 404 } : error))
    },
    clientErrorHandler: answerRawly,
  })
  app.setErrorHandler((error, _request, reply) => {
    const refusal = refusalOf(error)
    if (refusal.code === 'internal_error') onError(error)
    return refuse(reply.headers(headersOf(error)), refusal)
  })
  app.setNotFoundHandler(noRoute)
  if (faults !== undefined) addFaults(app, faults)
  await app.register(runsRoutes, runs)
  await app.register(outputRoutes, outputs)
  await app.ready()
  return app
}
