/** How the service manages connections: limits for slow and idle connections, closing, and draining before a stop. */
import { Server, Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '../../host/clock.js'
import { Refusal } from '../rules/refusal.js'

export const HTTP_LIMITS = {
  /** Maximum time from the connection, or from the first byte of a request, to the end of the headers. */
  headersMs: 15_000,
  /** Interval of the check for slow headers and requests. */
  checkIntervalMs: 5_000,
  /** Idle time after which a connection is closed. */
  idleMs: 120_000,
  /** Maximum time of one whole request. 15 minutes for a body of 64 MiB are 73 KiB/s. */
  requestMs: 900_000,
  headerBytes: 16_384,
  /** Maximum number of connections. Further ones are closed at once. */
  connections: 1_000,
}

export type HttpLimits = typeof HTTP_LIMITS

/**
 * Returns the client's IP address. Throws `Refusal` (400) if the client has closed the connection, which then has no
 * address; the response is not sent.
 */
export function clientAddress(request: FastifyRequest): string {
  if (request.raw.socket.remoteAddress === undefined)
    throw new Refusal('bad_request', 'The connection was closed.')
  return request.ip
}

/** Time to read the response, for a client that is still sending its request. */
const LINGER_MS = 1_000

/**
 * Closes the connection after this response. Closing at once while the client still sends would reset the connection,
 * and the client could lose the response. So the rest of the request is read and discarded for one second.
 */
export function closeAfter(reply: FastifyReply, clock: Clock): FastifyReply {
  const { socket } = reply.request.raw
  if (socket instanceof Socket)
    // Node calls this when the response is sent.
    socket.destroySoon = () => {
      socket.end()
      socket.once(
        'close',
        clock.alarm(LINGER_MS, () => socket.destroy()),
      )
    }
  return reply.header('connection', 'close')
}

/** Time to drain. Within it, a proxy under load uses each of its open connections. */
const DRAIN_MS = 1_000
const QUIET_MS = 0.3
const MAX_TURNS = 200

/**
 * Stops listening without losing a request, so that nodes behind a proxy can be restarted one by one. Call it in
 * Fastify's `preClose`: after that, Fastify's responses have `Connection: close`.
 *
 * The proxy does not know that this node stops, so the node accepts no new connections. A refused connection is
 * harmless: no request was sent on it, and the proxy uses another node. An open connection gets time for its next
 * request, and is closed after the response. Closing it while it is idle could lose a request in flight.
 */
export async function drain({ server }: FastifyInstance, clock: Clock): Promise<void> {
  if (!server.listening) return
  // The system resets connections that Node has not yet accepted, so close right after an idle turn of the event loop.
  for (let turn = 0; turn < MAX_TURNS; turn++) {
    const startedAtMs = performance.now()
    await new Promise(setImmediate)
    if (performance.now() - startedAtMs < QUIET_MS) break
  }
  // `http.Server.close` would also close idle connections.
  Server.prototype.close.call(server)
  await clock.sleep(DRAIN_MS)
}
