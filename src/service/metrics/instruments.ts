/** Every metric of the service: its name, labels and help text. docs/operations.md lists them. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { KINDS } from '../../protocol/models.js'

/** `crashed`: the renderer ended without a result. */
export type RenderOutcome = 'succeeded' | 'failed' | 'crashed'

/** From a status request of 1 ms to a large upload or download. */
const REQUEST_BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** From a preview image to the time limit of an engine, 30 minutes. */
const RENDER_BUCKETS_S = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1_800]

/** Registers what reads a gauge before each scrape. */
export type OnScrape = (read: () => Promise<void>) => void

export type Instruments = ReturnType<typeof createInstruments>

export function createInstruments(registry: Registry) {
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
    connections: new Gauge({
      name: 'rushes_http_connections',
      help: 'Open connections of clients.',
      registers,
    }),
    bodyBytes: new Gauge({
      name: 'rushes_http_request_body_bytes',
      help: 'Memory of request bodies in flight that counts toward the limit (all but the first 64 KiB of each).',
      registers,
    }),
    refusals: new Counter({
      name: 'rushes_limit_refusals_total',
      help: 'Requests and connections that were refused because of a limit, by limit.',
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
      help: 'Credits refunded for failed runs.',
      registers,
    }),
  }
  // A series that begins with 0 shows its first increase too.
  for (const limit of ['rate', 'quota', 'spend_limit', 'balance', 'bodies', 'connections'])
    instruments.refusals.inc({ limit }, 0)
  for (const status of ['succeeded', 'failed']) instruments.runsFinished.inc({ status }, 0)
  for (const kind of KINDS) instruments.rendering.set({ kind }, 0)
  return instruments
}
