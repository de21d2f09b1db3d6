import { Socket } from 'node:net'
import type { FastifyReply } from 'fastify'
import type { Clock } from '../../host/clock.js'

/** How long a client that is still sending has to read the response. */
const LINGER_MS = 1_000

/**
 * Closes the connection after this response. Closing at once, while the client still sends, would reset the connection,
 * and the client could lose the response: what it sends is read and dropped for a second.
 */
export function closeAfter(reply: FastifyReply, clock: Pick<Clock, 'alarm'>): FastifyReply {
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
