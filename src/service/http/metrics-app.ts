/** `GET /metrics` on a port of its own. It needs no key, so the port must be private. */
import { type FastifyInstance, fastify } from 'fastify'
import { Refusal } from '../rules/refusal.js'
import { refusalOf, sendRefusal } from './error-responses.js'

export const METRICS_PATH = '/metrics'

const MAX_REQUEST_MS = 10_000
const MAX_IDLE_MS = 120_000
const MAX_CONNECTIONS = 100

export interface MetricsSource {
  readonly contentType: string
  text(): Promise<string>
}

export function createMetricsApp({ contentType, text }: MetricsSource): FastifyInstance {
  const app = fastify({
    connectionTimeout: MAX_IDLE_MS,
    requestTimeout: MAX_REQUEST_MS,
    // Closing waits for nobody: the next scrape finds the next process.
    forceCloseConnections: true,
  })
  app.server.maxConnections = MAX_CONNECTIONS
  app.get(METRICS_PATH, async (_request, reply) => {
    reply.type(contentType)
    return await text()
  })
  app.setNotFoundHandler((_request, reply) => sendRefusal(reply, new Refusal('not_found')))
  app.setErrorHandler((error, _request, reply) => sendRefusal(reply, refusalOf(error)))
  return app
}
