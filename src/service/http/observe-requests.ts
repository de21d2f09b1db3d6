/** Tells the metrics about responses, connections and bodies. */
import { promisify } from 'node:util'
import type { FastifyInstance } from 'fastify'
import type { Refusal } from '../rules/refusal.js'
import type { BodyBudget } from './body-budget.js'
import { rawRefusalOf } from './error-responses.js'

export interface AnsweredRequest {
  /** Undefined for bytes that are not a request. */
  readonly method: string | undefined
  /** The pattern, never the URL. Undefined when the request has no route. */
  readonly route: string | undefined
  readonly status: number
  /** From its headers to the end of the response; undefined for bytes that are not a request. */
  readonly ms: number | undefined
}

export interface HttpReadings {
  countConnections(): Promise<number>
  bodyBytes(): number
}

export interface HttpMetrics {
  countRequest(request: AnsweredRequest): void
  countRefusal(refusal: Refusal): void
  /** There were too many connections, and one more was closed. */
  countDroppedConnection(): void
  /** The readings are taken at each scrape. */
  measureHttp(readings: HttpReadings): void
}

/** Call it before the routes are registered. */
export function observeRequests(
  app: FastifyInstance,
  budget: Pick<BodyBudget, 'heldBytes'> | undefined,
  metrics: HttpMetrics,
): void {
  app.addHook('onResponse', (request, reply, done) => {
    const { method, routeOptions } = request
    metrics.countRequest({ method, route: routeOptions.url, status: reply.statusCode, ms: reply.elapsedTime })
    done()
  })
  const { server } = app
  // Bytes that are not HTTP, and headers that are too large or too slow, never become a request.
  server.on('clientError', (error) => {
    const status = rawRefusalOf(error)?.status
    if (status !== undefined)
      metrics.countRequest({ method: undefined, route: undefined, status, ms: undefined })
  })
  server.on('drop', metrics.countDroppedConnection)
  metrics.measureHttp({
    countConnections: promisify(server.getConnections.bind(server)),
    bodyBytes: budget?.heldBytes ?? (() => 0),
  })
}
