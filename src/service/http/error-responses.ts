/** Turns refusals and errors into responses, all in the interface's shape (section 7). */
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { errorCode } from '../../host/system-error.js'
import { OPENAPI_PATH, RUNS_PATH } from '../../protocol/routes.js'
import { isDiskUnusable } from '../disk-unusable.js'
import { Refusal, type RefusalCode } from '../rules/refusal.js'
import { OUTPUTS_PATH } from '../stored-run.js'
import { HEALTH_PATH, READY_PATH } from './health-routes.js'

export const errorBody = ({ message, code }: Refusal) => ({ error: { message, code } })

export const sendRefusal = (reply: FastifyReply, refusal: Refusal): FastifyReply =>
  reply
    .code(refusal.status)
    .header('cache-control', 'no-store')
    .type('application/json; charset=utf-8')
    .send(errorBody(refusal))

/** The refusal to send for what was thrown. It never contains a stack or the message of an internal error. */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  if (errorCode(error) === 'SQLITE_READONLY_DBMOVED')
    return new Refusal('not_ready', 'Its database was removed, replaced or overwritten.')
  if (errorCode(error) === 'DATABASE_UNAVAILABLE')
    return new Refusal('not_ready', 'Its database cannot be reached.')
  if (isDiskUnusable(error)) return new Refusal('not_ready')
  const status = (error as { statusCode?: unknown } | undefined)?.statusCode
  if (status === 404) return new Refusal('not_found')
  return new Refusal(typeof status === 'number' && status < 500 ? 'bad_request' : 'internal_error')
}

const METHODS_OF: readonly (readonly [path: RegExp, allow: string])[] = [
  [new RegExp(`^${RUNS_PATH}$`), 'POST'],
  [new RegExp(`^${RUNS_PATH}/[^/]+$`), 'GET, HEAD'],
  [new RegExp(`^${OUTPUTS_PATH}/[^/]+/[^/]+$`), 'GET, HEAD'],
  [new RegExp(`^(${HEALTH_PATH}|${READY_PATH}|${OPENAPI_PATH.replace('.', '\\.')})$`), 'GET, HEAD'],
]

/** For a request without a route: the path is unknown (404), or does not take this method (405). */
export function sendNoRoute(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const path = request.url.replace(/\?.*$/s, '')
  const allow = METHODS_OF.find(([known]) => known.test(path))?.[1]
  if (allow === undefined || allow.split(', ').includes(request.method))
    return sendRefusal(reply, new Refusal('not_found'))
  return sendRefusal(reply.header('allow', allow), new Refusal('method_not_allowed', `Allowed: ${allow}.`))
}

/** For every request but a health check to a node that only renders. */
export const sendNoApi = (_request: FastifyRequest, reply: FastifyReply): FastifyReply =>
  sendRefusal(
    reply,
    new Refusal('not_found', 'This node only renders runs (--role worker); send requests to another.'),
  )

const RAW_CODES: Readonly<Record<string, RefusalCode>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}

/** For bytes that are not HTTP; undefined when the client has closed the connection. */
export const rawRefusalOf = ({ code = '' }: NodeJS.ErrnoException): Refusal | undefined =>
  code === 'ECONNRESET' ? undefined : new Refusal(RAW_CODES[code] ?? 'bad_request')

/** For bytes that could not be parsed as a request: the response is written to the socket itself. */
export function sendRawRefusal(error: NodeJS.ErrnoException, socket: Socket): void {
  const refusal = rawRefusalOf(error)
  if (refusal === undefined) socket.destroy()
  else endWithRefusal(socket, refusal)
}

export function endWithRefusal(socket: Duplex, refusal: Refusal): void {
  if (!socket.writable) return void socket.destroy()
  const body = JSON.stringify(errorBody(refusal))
  socket.end(
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
}
