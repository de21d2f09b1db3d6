/** An outcome onto the wire, exactly: whole answers by Node, broken ones by hand on the socket. */
import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { ConnectionReset } from '../faults/bytes.js'
import { type FaultResponse, hasNoBody, type Outcome } from '../faults/fault-response.js'

/** Resolves when everything is written that will be. A stalled connection stays open until its other side closes it. */
export async function sendOutcome(outcome: Outcome, response: ServerResponse): Promise<void> {
  // An answer has no socket of its own while the one before it is still being written.
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
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  let sent = 0
  try {
    response.flushHeaders()
    for await (const chunk of answer.body) {
      if (socket.destroyed) return
      if (chunk.byteLength === 0) continue
      // Node tells nobody about a chunk for a socket that has gone.
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

/** Fewer bytes than were declared: the end has to be that of the connection. */
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
 * Until the other side has read what came before: a reset overtakes what is still on its way, and a reader that finds
 * both at once takes it for an end in good order (libuv does). It is the kernel's time, so no clock is asked.
 */
const ARRIVAL_MS = 20

function reset(socket: Socket): void {
  if (socket.bytesWritten === 0) return void socket.resetAndDestroy()
  setTimeout(() => socket.resetAndDestroy(), ARRIVAL_MS)
}
