/**
 * Metrics of the service in Prometheus' text format (`serve --metrics-port`), listed in docs/operations.md. Only this
 * file imports prom-client, and only `serve` with the flag loads it.
 *
 * Labels are routes, statuses and other closed lists: never an id, a key, a token or a URL.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { settlesWithin } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import { KINDS, type Kind } from '../../protocol/models.js'
import { RendererCrashed, RunCanceled } from '../engines/engine.js'
import { type Address, listenOn } from '../http/listening.js'
import { createMetricsApp, type HttpMetrics, METRICS_PATH } from '../http/operations.js'
import { REFUSALS, type RefusalCode } from '../rules/refusal.js'
import { type Observers, observed } from '../store/calls.js'
import type { FailedRuns, ServiceStore } from '../store/contract.js'

export interface Metrics extends HttpMetrics {
  /** Returns a store that also counts credits and finished runs. */
  observeStore(store: ServiceStore): ServiceStore
  /** Measures the render of one run. */
  timeRender<Value>(kind: Kind, render: Promise<Value>): Promise<Value>
  /** Returns all metrics as text, within about a second, even while the database hangs. */
  text(): Promise<string>
  /** Throws `RushesError` (usage) when it cannot listen. */
  listen(address: Address): Promise<{ readonly url: string }>
  close(): Promise<void>
}

export function createMetrics(clock: Clock): Metrics {
  const registry = new Registry()
  const instruments = createInstruments(registry)
  const { rendering, renderSeconds } = instruments
  const all = Registry.merge([registry, processMetrics()])
  let readQueue = async () => {}

  async function text(): Promise<string> {
    await readQueue()
    return await all.metrics()
  }

  const app = createMetricsApp(all.contentType, text)

  return {
    ...createHttpMetrics(instruments),
    observeStore(store) {
      readQueue = createQueueReading(instruments, store, clock)
      return observed(store, countChanges(instruments))
    },
    async timeRender(kind, render) {
      const startedAtMs = clock.monotonic()
      // `crashed`: the renderer ended without a result.
      const observe = (outcome: 'succeeded' | 'failed' | 'crashed' | 'canceled') =>
        renderSeconds.observe({ kind, outcome }, (clock.monotonic() - startedAtMs) / 1_000)
      rendering.inc({ kind })
      try {
        const value = await render
        observe('succeeded')
        return value
      } catch (error) {
        observe(
          error instanceof RunCanceled ? 'canceled' : error instanceof RendererCrashed ? 'crashed' : 'failed',
        )
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

let processRegistry: Registry | undefined

/**
 * Process metrics: memory, CPU, event loop and garbage collection. prom-client cannot stop measuring them (with an
 * observer, and a timer that does not keep the process alive), so all services of a process share them.
 */
function processMetrics(): Registry {
  if (processRegistry === undefined) {
    processRegistry = new Registry()
    collectDefaultMetrics({ register: processRegistry })
  }
  return processRegistry
}

const NO_ROUTE = 'none'
const OTHER_METHOD = 'other'
const METHODS: readonly string[] = ['GET', 'HEAD', 'POST']

/** Label of the limit that caused a refusal. */
const LIMITS: Partial<Readonly<Record<RefusalCode, string>>> = {
  RATE_LIMITED: 'rate',
  USAGE_EXCEEDED: 'quota',
  api_key_spend_limit_exceeded: 'spend_limit',
  insufficient_balance: 'balance',
  overloaded: 'bodies',
}

/** Counts requests and refusals. Labels are closed lists, since clients choose addresses and methods. */
const createHttpMetrics = ({ requests, requestSeconds, refusals }: Instruments): HttpMetrics => ({
  countRequest({ method, route = NO_ROUTE, status, ms }) {
    requests.inc({ method: METHODS.includes(method) ? method : OTHER_METHOD, route, status })
    requestSeconds.observe({ route }, ms / 1_000)
  },
  countRefusal({ code, message }) {
    // Other limits use the same code, with another message.
    const isOther = code === 'overloaded' && message !== REFUSALS.overloaded.cause
    const limit = LIMITS[code]
    if (limit !== undefined && !isOther) refusals.inc({ limit })
  },
})

/** Maximum time that a scrape waits for the length of the queue. Prometheus waits 10 s for the scrape. */
const QUEUE_LIMIT_MS = 1_000

/** Returns the function that sets the gauge before each scrape. */
function createQueueReading(
  { queueLength }: Instruments,
  store: ServiceStore,
  clock: Clock,
): () => Promise<void> {
  let reading: Promise<Readonly<Record<Kind, number>>> | undefined
  return async () => {
    // Scrapes share one query, so that queries do not pile up at a database that hangs.
    reading ??= store.queueLengths().finally(() => {
      reading = undefined
    })
    const query = reading
    const isRead = await settlesWithin(QUEUE_LIMIT_MS, query, clock).catch(() => false)
    // Remove the value: an old length would look like a queue that does not move.
    if (!isRead) return queueLength.reset()
    const lengths = await query
    for (const kind of KINDS) queueLength.set({ kind }, lengths[kind])
  }
}

/** Counts credits and finished runs. */
function countChanges({ creditsCharged, creditsRefunded, runsFinished }: Instruments): Observers {
  function countFailures(failures: FailedRuns | undefined): void {
    if (failures === undefined) return
    runsFinished.inc({ status: 'failed' }, failures.runs)
    creditsRefunded.inc(failures.refunded)
  }

  return {
    addRun(added, run) {
      if ('id' in added && added.id === run.id) creditsCharged.inc(run.price)
    },
    finishRun: (isFinished) => isFinished && runsFinished.inc({ status: 'succeeded' }),
    cancelRun(found) {
      if (found?.isCanceled) runsFinished.inc({ status: 'canceled' })
      creditsRefunded.inc(found?.refunded ?? 0)
    },
    settleCanceled: (settled) => creditsRefunded.inc(settled?.refunded ?? 0),
    failRun: countFailures,
    recordCrash: countFailures,
    reapWorker: countFailures,
  }
}

/** Buckets in seconds, from a status request (1 ms) to a large upload or download. */
const REQUEST_BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** Buckets in seconds, from a preview image to the time limit of an engine (30 minutes). */
const RENDER_BUCKETS_S = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1_800]

type Instruments = ReturnType<typeof createInstruments>

function createInstruments(registry: Registry) {
  const registers = [registry]
  const instruments = {
    requests: new Counter({
      name: 'rushes_http_requests_total',
      help: 'Requests that were answered, by method, route and status.',
      labelNames: ['method', 'route', 'status'],
      registers,
    }),
    requestSeconds: new Histogram({
      name: 'rushes_http_request_duration_seconds',
      help: 'Time from the headers of a request to the end of its response, by route.',
      labelNames: ['route'],
      buckets: REQUEST_BUCKETS_S,
      registers,
    }),
    refusals: new Counter({
      name: 'rushes_limit_refusals_total',
      help: 'Requests that were refused because of a limit, by limit.',
      labelNames: ['limit'],
      registers,
    }),
    queueLength: new Gauge({
      name: 'rushes_queue_length',
      help: 'Queued runs in the database, by kind. Missing while the database cannot be read.',
      labelNames: ['kind'],
      registers,
    }),
    rendering: new Gauge({
      name: 'rushes_runs_rendering',
      help: 'Runs that this process is rendering, by kind.',
      labelNames: ['kind'],
      registers,
    }),
    renderSeconds: new Histogram({
      name: 'rushes_render_duration_seconds',
      help: 'Time of one render, by kind and outcome. A run whose renderer crashed is rendered again.',
      labelNames: ['kind', 'outcome'],
      buckets: RENDER_BUCKETS_S,
      registers,
    }),
    runsFinished: new Counter({
      name: 'rushes_runs_finished_total',
      help: 'Runs that reached their final status, by status.',
      labelNames: ['status'],
      registers,
    }),
    creditsCharged: new Counter({
      name: 'rushes_credits_charged_total',
      help: 'Credits charged for accepted runs.',
      registers,
    }),
    creditsRefunded: new Counter({
      name: 'rushes_credits_refunded_total',
      help: 'Credits refunded for failed and canceled runs.',
      registers,
    }),
  }
  // Start each series with 0, so that its first increase is visible too.
  for (const limit of Object.values(LIMITS)) instruments.refusals.inc({ limit }, 0)
  for (const status of ['succeeded', 'failed', 'canceled']) instruments.runsFinished.inc({ status }, 0)
  for (const kind of KINDS) instruments.rendering.set({ kind }, 0)
  return instruments
}
