/**
 * Responses for refusals and errors, all in the error format of the API. Node and Fastify answer what never becomes a
 * request: bytes that are not HTTP, headers that are too large or too slow, CONNECT and `Expect`.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { StorageUnavailable } from '../files/contract.js'
import { Refusal } from '../rules/refusal.js'
import { DatabaseUnavailable } from '../store/sql.js'
import { isDiskUnusable } from '../worker/log.js'

const errorBody = ({ message, code }: Refusal) => ({ error: { message, code } })

export const sendRefusal = (reply: FastifyReply, refusal: Refusal): FastifyReply =>
  reply
    .code(refusal.status)
    .header('cache-control', 'no-store')
    .type('application/json; charset=utf-8')
    .send(errorBody(refusal))

/** Returns the refusal to send for an error. It never contains a stack or the message of an internal error. */
export function refusalOf(error: unknown, bodyLimit?: number): Refusal {
  if (error instanceof Refusal) return error
  if (error instanceof DatabaseUnavailable) {
    const outcome = error.isUnknown ? ' A change may have been made.' : ''
    return new Refusal('not_ready', `Its database cannot be reached.${outcome}`)
  }
  if (isDiskUnusable(error)) return new Refusal('not_ready')
  if (error instanceof StorageUnavailable) return new Refusal('not_ready', 'Its storage does not answer.')
  const status = (error as { statusCode?: unknown } | undefined)?.statusCode
  if (status === 404) return new Refusal('not_found')
  if (status === 413) return new Refusal('payload_too_large', `The limit is ${bodyLimit} bytes.`)
  return new Refusal(typeof status === 'number' && status < 500 ? 'bad_request' : 'internal_error')
}

/** Handles requests without a route, also another method of a path that has one. */
export const sendNotFound = (_request: FastifyRequest, reply: FastifyReply): FastifyReply =>
  sendRefusal(reply, new Refusal('not_found'))
