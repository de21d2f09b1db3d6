/**
 * The metrics of a service, in Prometheus' text format (`serve --metrics-port`). The service calls the functions of
 * `Metrics`, and does without them when it has none; only this folder imports prom-client, and only `serve` with the flag
 * loads it.
 *
 *   instruments.ts      names, labels and help texts
 *   request-metrics.ts  requests, connections, bodies in memory, refusals
 *   store-metrics.ts    credits, ended runs, the length of the queue
 *
 * Labels are routes, statuses and other closed lists: never an id, a key, a token or a URL.
 */
import { collectDefaultMetrics, Registry } from 'prom-client'
import type { Clock } from '../../host/clock.js'
import type { Kind } from '../../protocol/models.js'
import { RendererCrashed } from '../engines/renderer-crashed.js'
import { type Address, listenOn } from '../http/listening.js'
import { createMetricsApp, METRICS_PATH } from '../http/metrics-app.js'
import type { HttpMetrics } from '../http/observe-requests.js'
import { createInstruments, type RenderOutcome } from './instruments.js'
import { createRequestMetrics } from './request-metrics.js'
import { createStoreMetrics, type StoreMetrics } from './store-metrics.js'

export interface Metrics extends HttpMetrics, StoreMetrics {
  /** Measures the render of one run. */
  timeRender<Value>(kind: Kind, render: Promise<Value>): Promise<Value>
  /** All metrics as text. Takes about a second at most, whatever state the database is in. */
  text(): Promise<string>
  /** Throws `RushesError` (usage) when it cannot listen. */
  listen(address: Address): Promise<{ readonly url: string }>
  close(): Promise<void>
}

export function createMetrics(clock: Pick<Clock, 'monotonic' | 'sleep'>): Metrics {
  const registry = new Registry()
  const instruments = createInstruments(registry)
  const { rendering, renderSeconds } = instruments
  const all = Registry.merge([registry, processMetrics()])
  const reads: (() => Promise<void>)[] = []
  const onScrape = (read: () => Promise<void>) => void reads.push(read)

  async function text(): Promise<string> {
    await Promise.all(reads.map((read) => read()))
    return await all.metrics()
  }

  const app = createMetricsApp({ text, contentType: all.contentType })

  return {
    ...createRequestMetrics(instruments, onScrape),
    ...createStoreMetrics(instruments, onScrape, clock),
    async timeRender(kind, render) {
      const startedAtMs = clock.monotonic()
      const observe = (outcome: RenderOutcome) =>
        renderSeconds.observe({ kind, outcome }, (clock.monotonic() - startedAtMs) / 1_000)
      rendering.inc({ kind })
      try {
        const value = await render
        observe('succeeded')
        return value
      } catch (error) {
        observe(error instanceof RendererCrashed ? 'crashed' : 'failed')
        throw error
      } finally {
        rendering.dec({ kind })
      }
    },
    text,
    async listen(address) {
      const { url } = await listenOn(app, address, '--metrics-port')
      return { url: `${url}${METRICS_PATH}` }
    },
    close: () => app.close(),
  }
}

let ofProcess: Registry | undefined

/**
 * Memory, CPU, event loop and garbage collection. prom-client cannot stop what measures them (a timer that does not keep
 * the process alive, and an observer), so there is one set for each process and not for each service.
 */
function processMetrics(): Registry {
  if (ofProcess === undefined) {
    ofProcess = new Registry()
    collectDefaultMetrics({ register: ofProcess })
  }
  return ofProcess
}
