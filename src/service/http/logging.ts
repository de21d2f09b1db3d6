/**
 * The log: one line of JSON for each event, written by Fastify's pino. It names routes and not addresses, since the
 * address of an output is as good as a key; it holds no header and no body.
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

/** Requests are told at `info`; below that they cost nothing. */
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
