/** Responses for refusals and errors, all in the error format of the API. */
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { errorCode } from '../../host/system-error.js'
import { StorageUnavailable } from '../files/contract.js'
import { isDiskUnusable } from '../log.js'
import { Refusal, type RefusalCode } from '../rules/refusal.js'
import { DatabaseUnavailable } from '../store/contract.js'

const errorBody = ({ message, code }: Refusal) => ({ error: { message, code } })

export const sendRefusal = (reply: FastifyReply, refusal: Refusal): FastifyReply =>
  reply
    .code(refusal.status)
    .header('cache-control', 'no-store')
    .type('application/json; charset=utf-8')
    .send(errorBody(refusal))

/** Returns the refusal to send for an error. It never contains a stack or the message of an internal error. */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  if (errorCode(error) === 'SQLITE_READONLY_DBMOVED')
    return new Refusal('not_ready', 'Its database was removed, replaced or overwritten.')
  if (error instanceof DatabaseUnavailable) {
    const outcome = error.isUnknown ? ' A change may have been made.' : ''
    return new Refusal('not_ready', `Its database cannot be reached.${outcome}`)
  }
  if (isDiskUnusable(error)) return new Refusal('not_ready')
  if (error instanceof StorageUnavailable) return new Refusal('not_ready', 'Its storage does not answer.')
  const status = (error as { statusCode?: unknown } | undefined)?.statusCode
  if (status === 404) return new Refusal('not_found')
  if (status === 413) return new Refusal('payload_too_large')
  return new Refusal(typeof status === 'number' && status < 500 ? 'bad_request' : 'internal_error')
}

/** A path that has routes, and their methods. */
interface KnownPath {
  readonly path: RegExp
  readonly methods: Set<string>
}

/**
 * Handles requests without a route: 404 for an unknown path, 405 for an unsupported method of a known path. Call it
 * before the routes are registered.
 */
export function createNoRoute(app: FastifyInstance) {
  const known = new Map<string, KnownPath>()
  app.addHook('onRoute', ({ url, method }) => {
    const found = known.get(url) ?? { path: pathPattern(url), methods: new Set() }
    known.set(url, found)
    for (const each of [method].flat()) found.methods.add(each)
  })
  return (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const path = request.url.replace(/\?.*$/s, '')
    const methods = [...known.values()].find((each) => each.path.test(path))?.methods
    if (methods === undefined || methods.has(request.method))
      return sendRefusal(reply, new Refusal('not_found'))
    const allow = [...methods].sort().join(', ')
    return sendRefusal(reply.header('allow', allow), new Refusal('method_not_allowed', `Allowed: ${allow}.`))
  }
}

/** Pattern of a route's URL, such as `/api/v1/runs/:id`. */
const pathPattern = (url: string): RegExp =>
  new RegExp(`^${url.replaceAll('.', '\\.').replace(/:\w+/g, '[^/]+')}$`)

/** Handles all requests except health checks, on a node that only renders. */
export const sendNoApi = (_request: FastifyRequest, reply: FastifyReply): FastifyReply =>
  sendRefusal(
    reply,
    new Refusal('not_found', 'This node only renders runs (--role worker); send requests to another.'),
  )

const RAW_CODES: Readonly<Record<string, RefusalCode>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}

/** Returns the refusal for bytes that are not HTTP; undefined if the client has closed the connection. */
export const rawRefusalOf = ({ code = '' }: NodeJS.ErrnoException): Refusal | undefined =>
  code === 'ECONNRESET' ? undefined : new Refusal(RAW_CODES[code] ?? 'bad_request')

/** Writes a response directly to the socket, for bytes that could not be parsed as a request. */
export function sendRawRefusal(error: NodeJS.ErrnoException, socket: Socket): void {
  const refusal = rawRefusalOf(error)
  if (refusal === undefined) socket.destroy()
  else endWithRefusal(socket, refusal)
}

function endWithRefusal(socket: Duplex, refusal: Refusal): void {
  if (!socket.writable) return void socket.destroy()
  const body = JSON.stringify(errorBody(refusal))
  const head = [
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}

/**
 * Refuses, in the API's error format, requests that Node would answer without a body: a missing `Host`, `Expect`, and
 * CONNECT.
 */
export function refuseUnsupported(app: FastifyInstance): void {
  app.addHook('onRequest', async ({ raw }) => {
    if (raw.headers.host === undefined && raw.httpVersion === '1.1')
      throw new Refusal('bad_request', 'The Host header is missing.')
  })
  app.server.on('checkExpectation', ({ socket }) => endWithRefusal(socket, new Refusal('expectation_failed')))
  app.server.on('connect', (_request, socket) => {
    socket.on('error', () => socket.destroy())
    endWithRefusal(socket, new Refusal('method_not_allowed', 'The service is not a proxy.'))
  })
}
