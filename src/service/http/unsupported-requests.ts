import type { FastifyInstance } from 'fastify'
import { Refusal } from '../rules/refusal.js'
import { endWithRefusal } from './error-responses.js'

/** What Node would answer by itself, without a body, gets the interface's shape: no `Host`, `Expect`, and CONNECT. */
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
