/** Operation of the service: the log, request metrics, and health checks. */
import type { FastifyInstance, FastifyServerOptions } from 'fastify'
import { settlesWithin } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import { escapeControls } from '../../protocol/text.js'
import type { Caller } from '../rules/key-checks.js'
import { Refusal } from '../rules/refusal.js'
import type { Metrics } from './metrics.js'

export interface Logging {
  readonly level: 'silent' | 'error' | 'warn' | 'info' | 'debug'
  write(line: string): void
}

/**
 * Options of Fastify's logger (pino), which writes one line of JSON per event. The log has routes instead of URLs,
 * since the URL of an output is enough to read it; and no headers or bodies.
 */
export function loggerOf(logging: Logging | undefined): NonNullable<FastifyServerOptions['logger']> {
  if (logging === undefined || logging.level === 'silent') return false
  return {
    level: logging.level,
    base: null,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label) => ({ level: label }) },
    stream: { write: (line) => logging.write(escapeControls(line)) },
  }
}

/** Logs each request at level `info`, and counts it. Call it before the routes are registered. */
export function observeRequests(app: FastifyInstance, metrics: Metrics | undefined): void {
  app.addHook('onResponse', async (request, reply) => {
    const { method, routeOptions } = request
    const { url: route } = routeOptions
    const { statusCode: status, elapsedTime: ms } = reply
    metrics?.countRequest({ method, route, status, ms })
    const caller = 'caller' in request ? (request.caller as Caller | null) : null
    const by = caller && { account: caller.accountId, key: caller.keyId }
    app.log.info({ method, route: route ?? null, status, ms: Math.round(ms * 10) / 10, ...by }, 'request')
  })
}

const HEALTH_PATH = '/healthz'
const READY_PATH = '/readyz'

/** Routes of health checks. They need no key, have no rate limit, and return no data about runs. */
export async function addHealthRoutes(
  app: FastifyInstance,
  { isReady }: { isReady(): Promise<boolean> },
): Promise<void> {
  app.addHook('onSend', async (_request, reply) => void reply.header('cache-control', 'no-store'))
  app.get(HEALTH_PATH, async () => ({ status: 'ok' }))
  app.get(READY_PATH, async () => {
    if (!(await isReady().catch(() => false))) throw new Refusal('not_ready')
    return { status: 'ready' }
  })
}

/** Time limit of the checks. A slower write means that the database is locked; a slower storage counts as unavailable. */
const CHECK_LIMIT_MS = 1_000
/** Time to reuse a result: a check needs no key, but writes to the disk and calls the storage. */
const CACHED_MS = 1_000

/** Returns a function that tells whether the service can accept requests: the disk has space, and no check rejects. */
export function createReadiness(
  checks: readonly (() => Promise<void>)[],
  isDiskFull: () => boolean,
  clock: Clock,
): () => Promise<boolean> {
  let checkedAtMs = Number.NEGATIVE_INFINITY
  let last: Promise<boolean> = Promise.resolve(false)
  return () => {
    if (clock.monotonic() - checkedAtMs < CACHED_MS) return last
    checkedAtMs = clock.monotonic()
    last = isDiskFull()
      ? Promise.resolve(false)
      : settlesWithin(CHECK_LIMIT_MS, Promise.all(checks.map((check) => check())), clock).catch(() => false)
    return last
  }
}
