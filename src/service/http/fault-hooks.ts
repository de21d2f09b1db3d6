/**
 * `serve --fault`: injects faults between the connection and the routes. Node sends only complete responses, so broken
 * ones are written directly to the socket.
 */
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import { Socket } from 'node:net'
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { onAbort } from '../../host/abort.js'
import {
  ConnectionReset,
  createResponse,
  type FaultOutcome,
  type FaultResponse,
  hasNoBody,
} from '../faults/apply-fault.js'
import type { Faults } from '../faults/index.js'

/** Call it before the routes are registered. Faults apply only to requests over a real connection. */
export function addFaultHooks(app: FastifyInstance, faults: Faults): void {
  const usedSockets = new WeakSet<Socket>()
  const takeOver = new WeakMap<IncomingMessage, (answer: FaultResponse) => void>()
  const closing = new AbortController()

  app.addHook('onRequest', (request, reply, done) => {
    const { socket } = request.raw
    if (!(socket instanceof Socket)) return done()
    const interception = faults.intercept({
      method: request.method,
      path: request.url,
      reused: usedSockets.has(socket),
    })
    usedSockets.add(socket)
    if (interception === undefined) return done()

    // The service's idle timeout would end a long delay early.
    socket.setTimeout(0)
    const end = new AbortController()
    const destroySocket = () => socket.destroy()
    const removeListener = interception.isAffected ? onAbort(closing.signal, destroySocket) : () => {}
    reply.raw.once('close', () => {
      end.abort(new Error('the connection was closed'))
      removeListener()
    })

    const exchange = {
      signal: end.signal,
      readUpload: (bytes: number) => readUpload(request.raw, bytes),
      ask: () =>
        new Promise<FaultResponse>((resolve) => {
          takeOver.set(request.raw, resolve)
          done()
        }),
    }
    interception
      .respond(exchange)
      .then((outcome) => sendOutcome(outcome, reply.raw))
      .catch(destroySocket)
  })

  app.addHook('onSend', (request, reply, payload, done) => {
    const take = takeOver.get(request.raw)
    // Without `done`, Fastify does not send this response: `sendOutcome` sends it.
    if (take === undefined) done(null, payload)
    else take(responseFrom(reply, payload))
  })

  // On closing, do not wait for responses that a fault delays.
  app.addHook('preClose', async () => closing.abort())
}

function readUpload(request: IncomingMessage, bytes: number): Promise<void> {
  return new Promise((resolve) => {
    let taken = 0
    const check = () => {
      if (taken >= bytes) resolve()
    }
    request.on('data', (chunk: Uint8Array) => {
      taken += chunk.byteLength
      check()
    })
    for (const event of ['end', 'close', 'error']) request.once(event, () => resolve())
    check()
  })
}

function responseFrom(reply: FastifyReply, payload: unknown): FaultResponse {
  const status = reply.statusCode
  const headers = Object.fromEntries(
    Object.entries(reply.getHeaders()).map(([name, value]) => [name.toLowerCase(), String(value)]),
  )
  if (!(payload instanceof Readable))
    return createResponse(
      status,
      headers,
      typeof payload === 'string' || Buffer.isBuffer(payload) ? payload : '',
    )
  payload.on('error', () => {})
  return { status, headers, body: payload, discard: () => void payload.destroy() }
}

/** Resolves when everything is written. A stalled connection stays open until the client closes it. */
export async function sendOutcome(outcome: FaultOutcome, response: ServerResponse): Promise<void> {
  // `response.socket` is null while an earlier response on the connection is being written, so use the request's.
  const { socket } = response.req
  if (socket.destroyed) {
    if (outcome.kind === 'answer') outcome.answer.discard()
    return
  }
  switch (outcome.kind) {
    case 'answer':
      return await writeAnswer(outcome.answer, response, socket)
    case 'reset':
      if (outcome.head !== undefined) await writeHead(outcome.head.answer, outcome.head.bytes, socket)
      return reset(socket)
    case 'close':
      return void socket.end()
    case 'noise':
      return void socket.end(outcome.bytes)
    case 'stall':
      return
  }
}

async function writeAnswer(answer: FaultResponse, response: ServerResponse, socket: Socket): Promise<void> {
  response.writeHead(answer.status, answer.headers)
  const closed = new Promise<void>((resolve) => response.once('close', resolve))
  let sent = 0
  try {
    response.flushHeaders()
    for await (const chunk of answer.body) {
      if (socket.destroyed) return
      if (chunk.byteLength === 0) continue
      // Node does not call the callback if the socket closes first.
      await Promise.race([new Promise((resolve) => response.write(chunk, resolve)), closed])
      sent += chunk.byteLength
    }
  } catch (error) {
    if (error instanceof ConnectionReset) reset(socket)
    else socket.destroy()
    return
  }
  if (isShort(answer, sent, response)) socket.end()
  else response.end()
}

/** Whether fewer bytes than declared were sent. Then only closing the connection ends the response. */
function isShort({ status, headers }: FaultResponse, sent: number, { req }: ServerResponse): boolean {
  if (req.method === 'HEAD' || hasNoBody(status)) return false
  return sent < Number(headers['content-length'] ?? 0)
}

async function writeHead(answer: FaultResponse, bytes: number, socket: Socket): Promise<void> {
  answer.discard()
  const lines = Object.entries(answer.headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const head = `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status] ?? ''}\r\n${lines.join('')}\r\n`
  const part = Buffer.from(head, 'latin1').subarray(0, bytes)
  if (part.byteLength > 0) await new Promise((resolve) => socket.write(part, resolve))
}

/**
 * Time for the client to read earlier data before the reset. A reset overtakes data in flight, and a reader that finds
 * both at once sees a normal end (as with libuv). The kernel needs this time, so the injected clock is not used.
 */
const RESET_DELAY_MS = 100

function reset(socket: Socket): void {
  if (socket.bytesWritten === 0) return void socket.resetAndDestroy()
  setTimeout(() => socket.resetAndDestroy(), RESET_DELAY_MS)
}
