/** Responses and connections of the service's own port. */
import { promisify } from 'node:util'
import type { FastifyInstance } from 'fastify'
import type { BodyBudget } from '../http/body-budget.js'
import { rawRefusalOf } from '../http/error-responses.js'
import type { Instruments, OnScrape } from './instruments.js'

export interface RequestObserver {
  /** Call it before the routes are registered. */
  observeRequests(app: FastifyInstance, budget: Pick<BodyBudget, 'heldBytes'>): void
}

/** One label for all requests without a route, and one for all methods that no route takes: clients choose both. */
const NO_ROUTE = 'none'
const OTHER_METHOD = 'other'
const METHODS: readonly string[] = ['GET', 'HEAD', 'POST']

export const createRequestObserver = (
  {
    requests,
    requestSeconds,
    connections,
    bodyBytes,
    refusals,
  }: Pick<Instruments, 'requests' | 'requestSeconds' | 'connections' | 'bodyBytes' | 'refusals'>,
  onScrape: OnScrape,
): RequestObserver => ({
  observeRequests(app, budget) {
    app.addHook('onResponse', (request, reply, done) => {
      const route = request.routeOptions.url ?? NO_ROUTE
      const method = METHODS.includes(request.method) ? request.method : OTHER_METHOD
      requests.inc({ method, route, status: reply.statusCode })
      requestSeconds.observe({ route }, reply.elapsedTime / 1_000)
      done()
    })
    const { server } = app
    // What is refused before there is a request: bytes that are not HTTP, headers that are too large or too slow.
    server.on('clientError', (error) => {
      const refusal = rawRefusalOf(error)
      if (refusal !== undefined)
        requests.inc({ method: OTHER_METHOD, route: NO_ROUTE, status: refusal.status })
    })
    server.on('drop', () => refusals.inc({ limit: 'connections' }))
    const countConnections = promisify(server.getConnections.bind(server))
    onScrape(async () => connections.set(await countConnections()))
    onScrape(async () => bodyBytes.set(budget.heldBytes()))
  },
})
