/**
 * Stops to listen and loses no request, so that nodes behind a proxy can be restarted one by one.
 *
 * The proxy does not know that a node stops. A connection that is refused does no harm: nothing was sent on it, and the proxy
 * takes another node. So the node first accepts no more. Those that are open get the time for their next request, and are
 * closed by its response: if they were closed while they wait, a request might be on its way.
 */
import { Server } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Clock } from '../../host/clock.js'

/** In which a proxy under load uses each of its open connections. */
const DRAIN_MS = 1_000
const QUIET_MS = 0.3
const MAX_TURNS = 200

/** Call it in Fastify's `preClose`: from then on its responses have `Connection: close`. */
export async function drain({ server }: FastifyInstance, clock: Pick<Clock, 'sleep'>): Promise<void> {
  if (!server.listening) return
  // The system resets connections that were not accepted, so it closes directly after a turn of the event loop that had no work.
  for (let turn = 0; turn < MAX_TURNS; turn++) {
    const startedAtMs = performance.now()
    await new Promise(setImmediate)
    if (performance.now() - startedAtMs < QUIET_MS) break
  }
  // That of `http.Server` would also close the connections that wait for their next request.
  Server.prototype.close.call(server)
  await clock.sleep(DRAIN_MS)
}
