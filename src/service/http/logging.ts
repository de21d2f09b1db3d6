/**
 * The log: one line of JSON for each event, written by Fastify's pino. It contains routes and no URLs, since whoever
 * has the URL of an output can read it; and no headers and no bodies.
 */
import type { FastifyInstance, FastifyServerOptions } from 'fastify'
import { escapeControls } from '../../protocol/text.js'
import type { Caller } from '../rules/caller.js'

export type LogLevel = 'silent' | 'error' | 'warn' | 'info' | 'debug'

export interface Logging {
  readonly level: LogLevel
  /** Whether accepted runs are logged with their prompts. */
  readonly prompts: boolean
  write(line: string): void
}

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

/** Logs each request at level `info`. */
export function logRequests(app: FastifyInstance, logging: Logging | undefined): void {
  if (logging?.level !== 'info' && logging?.level !== 'debug') return
  app.addHook('onResponse', async (request, reply) => {
    const caller = 'caller' in request ? (request.caller as Caller | null) : null
    app.log.info(
      {
        method: request.method,
        route: request.routeOptions.url ?? null,
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime * 10) / 10,
        ...(caller && { account: caller.accountId, key: caller.keyId }),
      },
      'request',
    )
  })
}
