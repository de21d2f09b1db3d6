/** `serve --fault`: applies faults between the connection and the routes. */
import type { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { onAbort } from '../../host/abort.js'
import { createResponse, type FaultResponse } from '../faults/fault-response.js'
import type { Faults } from '../faults/index.js'
import { sendOutcome } from './send-outcome.js'

/** Call it before the routes are registered. Faults apply only to requests over a real connection. */
export function addFaultHooks(app: FastifyInstance, faults: Faults): void {
  const used = new WeakSet<Socket>()
  const handOver = new WeakMap<IncomingMessage, (answer: FaultResponse) => void>()
  const closing = new AbortController()

  app.addHook('onRequest', (request, reply, goOn) => {
    const { socket } = request.raw
    if (!(socket instanceof Socket)) return goOn()
    const interception = faults.intercept({
      method: request.method,
      path: request.url,
      reused: used.has(socket),
    })
    used.add(socket)
    if (interception === undefined) return goOn()

    // The service's idle timeout would cut a long delay short.
    socket.setTimeout(0)
    const end = new AbortController()
    const cut = () => socket.destroy()
    const forget = interception.isAffected ? onAbort(closing.signal, cut) : () => {}
    reply.raw.once('close', () => {
      end.abort(new Error('the connection was closed'))
      forget()
    })

    const exchange = {
      signal: end.signal,
      readUpload: (bytes: number) => readUpload(request.raw, bytes),
      ask: () =>
        new Promise<FaultResponse>((resolve) => {
          handOver.set(request.raw, resolve)
          goOn()
        }),
    }
    interception
      .respond(exchange)
      .then((outcome) => sendOutcome(outcome, reply.raw))
      .catch(cut)
  })

  app.addHook('onSend', (request, reply, payload, goOn) => {
    const take = handOver.get(request.raw)
    // Fastify does not continue with a response that is taken over: `sendOutcome` sends it.
    if (take === undefined) goOn(null, payload)
    else take(responseFrom(reply, payload))
  })

  // Closing does not wait for responses that a fault holds up.
  app.addHook('preClose', (done) => {
    closing.abort()
    done()
  })
}

function readUpload(request: IncomingMessage, bytes: number): Promise<void> {
  return new Promise((resolve) => {
    let taken = 0
    const look = () => {
      if (taken >= bytes) resolve()
    }
    request.on('data', (chunk: Uint8Array) => {
      taken += chunk.byteLength
      look()
    })
    for (const over of ['end', 'close', 'error']) request.once(over, () => resolve())
    look()
  })
}

function responseFrom(reply: FastifyReply, payload: unknown): FaultResponse {
  const headers = Object.fromEntries(
    Object.entries(reply.getHeaders()).map(([name, value]) => [name.toLowerCase(), String(value)]),
  )
  if (!(payload instanceof Readable))
    return createResponse(
      reply.statusCode,
      headers,
      typeof payload === 'string' || Buffer.isBuffer(payload) ? payload : '',
    )
  payload.on('error', () => {})
  return { status: reply.statusCode, headers, body: payload, discard: () => void payload.destroy() }
}
