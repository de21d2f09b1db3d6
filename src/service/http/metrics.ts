/**
 * Metrics of the service in Prometheus' text format (`serve --metrics-port`), listed in docs/operations.md. Only this
 * file imports prom-client, and only `serve` with the flag loads it. Labels are routes, statuses and other closed lists:
 * never an id, a key, a token or a URL.
 */
import { fastify } from 'fastify'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { settlesWithin } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import { KINDS, type Kind } from '../../protocol/models.js'
import type { Store } from '../store/index.js'
import { type Address, listenOn } from './connections.js'
import { refusalOf, sendNotFound, sendRefusal } from './error-responses.js'

export type Metrics = ReturnType<typeof createMetrics>

/** Maximum time that a scrape waits for the length of the queue. Prometheus waits 10 s for the scrape. */
const QUEUE_LIMIT_MS = 1_000
/** Buckets in seconds, from a preview image to the time limit of a run (one hour). */
const RENDER_BUCKETS_S = [0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 3_600]
const METRICS_PATH = '/metrics'

export function createMetrics(clock: Clock) {
  const registry = new Registry()
  const registers = [registry]
  const requests = new Counter({
    name: 'rushes_http_requests_total',
    help: 'Requests that were answered.',
    registers,
    labelNames: ['route', 'status'],
  })
  const renderSeconds = new Histogram({
    name: 'rushes_render_duration_seconds',
    help: 'Time of one render.',
    labelNames: ['kind', 'outcome'],
    buckets: RENDER_BUCKETS_S,
    registers,
  })
  const credits = new Counter({
    name: 'rushes_credits_charged_total',
    help: 'Credits charged for accepted runs.',
    registers,
  })
  let queue: Pick<Store, 'queueLengths'> | undefined
  new Gauge({
    name: 'rushes_queue_length',
    labelNames: ['kind'],
    registers,
    help: 'Queued runs in the database. Missing while the database cannot be read.',
    async collect() {
      this.reset()
      const query = queue?.queueLengths()
      if (query === undefined || !(await settlesWithin(QUEUE_LIMIT_MS, query, clock).catch(() => false)))
        return
      const lengths = await query
      for (const kind of KINDS) this.set({ kind }, lengths[kind])
    },
  })
  // On closing, do not wait for scrapes: the next scrape reaches the next process.
  const app = fastify({ forceCloseConnections: true })
  // It needs no key, so the port must be private.
  app.get(METRICS_PATH, async (_request, reply) =>
    reply.type(registry.contentType).send(await registry.metrics()),
  )
  app.setNotFoundHandler(sendNotFound)
  app.setErrorHandler((error, _request, reply) => sendRefusal(reply, refusalOf(error)))

  return {
    /** `route`: the pattern of the route, never the URL. Undefined for a request without a route. */
    countRequest: (route = 'none', status: number): void => requests.inc({ route, status }),
    countCredits: (price: number): void => credits.inc(price),
    /** Measures the render of one run. */
    async timeRender<Value>(kind: Kind, render: Promise<Value>): Promise<Value> {
      const startedAtMs = clock.monotonic()
      let outcome = 'failed'
      try {
        const value = await render
        outcome = 'succeeded'
        return value
      } finally {
        renderSeconds.observe({ kind, outcome }, (clock.monotonic() - startedAtMs) / 1_000)
      }
    },
    /** Sets the store whose queue is measured. */
    observeQueue(store: Pick<Store, 'queueLengths'>): void {
      queue = store
    },
    /** Throws `RushesError` (usage) when it cannot listen. */
    async listen(address: Address): Promise<{ readonly url: string }> {
      const { url } = await listenOn(app, address, '--metrics-port')
      return { url: `${url}${METRICS_PATH}` }
    },
    text: (): Promise<string> => registry.metrics(),
    close: (): Promise<void> => app.close(),
  }
}
