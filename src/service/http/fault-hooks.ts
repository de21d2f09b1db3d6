/** Faults in the service itself: what `serve --fault` asks for, between the connection and the routes. */
import type { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { onAbort } from '../../host/abort.js'
import { type Answer, answerOf } from '../faults/fault-response.js'
import type { Faults } from '../faults/index.js'
import { deliver } from './send-outcome.js'

/** To be called before the routes are registered. Only requests over a real connection are struck. */
export function addFaults(app: FastifyInstance, faults: Faults): void {
  const used = new WeakSet<Socket>()
  const handOver = new WeakMap<IncomingMessage, (answer: Answer) => void>()
  const closing = new AbortController()

  app.addHook('onRequest', (request, reply, goOn) => {
    const { socket } = request.raw
    if (!(socket instanceof Socket)) return goOn()
    const encounter = faults.meet({ method: request.method, path: request.url, reused: used.has(socket) })
    used.add(socket)
    if (encounter === undefined) return goOn()

    // The service's own watch over connections on which nothing moves would cut a long delay short.
    socket.setTimeout(0)
    const end = new AbortController()
    const cut = () => socket.destroy()
    const forget = encounter.isStruck ? onAbort(closing.signal, cut) : () => {}
    reply.raw.once('close', () => {
      end.abort(new Error('the connection is closed'))
      forget()
    })

    const exchange = {
      signal: end.signal,
      takeIn: (bytes: number) => takeIn(request.raw, bytes),
      ask: () =>
        new Promise<Answer>((resolve) => {
          handOver.set(request.raw, resolve)
          goOn()
        }),
    }
    encounter
      .carryOut(exchange)
      .then((outcome) => deliver(outcome, reply.raw))
      .catch(cut)
  })

  app.addHook('onSend', (request, reply, payload, goOn) => {
    const take = handOver.get(request.raw)
    // What is taken over here, Fastify hears of no more: it goes out by `deliver`.
    if (take === undefined) goOn(null, payload)
    else take(answerFrom(reply, payload))
  })

  // What a fault holds up is not an answer to wait for.
  app.addHook('preClose', (done) => {
    closing.abort()
    done()
  })
}

function takeIn(request: IncomingMessage, bytes: number): Promise<void> {
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

function answerFrom(reply: FastifyReply, payload: unknown): Answer {
  const headers = Object.fromEntries(
    Object.entries(reply.getHeaders()).map(([name, value]) => [name.toLowerCase(), String(value)]),
  )
  if (!(payload instanceof Readable))
    return answerOf(
      reply.statusCode,
      headers,
      typeof payload === 'string' || Buffer.isBuffer(payload) ? payload : '',
    )
  payload.on('error', () => {})
  return { status: reply.statusCode, headers, body: payload, discard: () => void payload.destroy() }
}
