import type { FastifyRequest } from 'fastify'
import { Refusal } from '../rules/refusal.js'

/** Throws `Refusal` (400) when the client has closed the connection, which then has no address. Nobody gets that response. */
export function clientAddress(request: FastifyRequest): string {
  if (request.raw.socket.remoteAddress === undefined)
    throw new Refusal('bad_request', 'The connection was closed.')
  return request.ip
}
