/**
 * Stops to listen without losing a request, so that nodes behind a proxy can be restarted one by one.
 *
 * The proxy does not know that a node stops. While the node drains it still accepts connections, and each response closes its own, so the
 * proxy keeps none open that would be closed under its next request. Then no connection is accepted any more, which the proxy
 * meets before it sends anything. Those that were accepted before get the time to send their request.
 */
import { Server } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Clock } from '../../host/clock.js'

/** In which a proxy uses each of its open connections at least once, or has no use for it. */
const DRAIN_MS = 750
/** From the connection to the first bytes of its request. */
const ARRIVAL_MS = 250

/** Call it in Fastify's `preClose`: from then on its responses have `Connection: close`. */
export async function drain({ server }: FastifyInstance, clock: Pick<Clock, 'sleep'>): Promise<void> {
  if (!server.listening) return
  await clock.sleep(DRAIN_MS)
  // Directly after the event loop has accepted what was waiting: the system resets what was not accepted.
  for (let turn = 0; turn < 2; turn++) await new Promise(setImmediate)
  // That of `http.Server` would also close the connections that have no request yet.
  Server.prototype.close.call(server)
  await clock.sleep(ARRIVAL_MS)
}
