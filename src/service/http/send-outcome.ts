/** Sends an outcome byte by byte as asked for: whole responses by Node, broken ones directly on the socket. */
import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { ConnectionReset } from '../faults/bytes.js'
import { type FaultResponse, hasNoBody, type Outcome } from '../faults/fault-response.js'

/** Resolves when everything is written. A stalled connection stays open until the client closes it. */
export async function sendOutcome(outcome: Outcome, response: ServerResponse): Promise<void> {
  // `response.socket` is null while an earlier response on the connection is being written.
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
      // Node does not call back for a chunk when the socket has closed.
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

/** Whether fewer bytes than declared were sent: then closing the connection ends the response. */
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
 * Time for the client to read what was sent before the reset: a reset overtakes data on its way, and a reader that
 * finds both at once sees a normal end (libuv does). This is time of the kernel, so the injected clock is not used.
 */
const RESET_DELAY_MS = 100

function reset(socket: Socket): void {
  if (socket.bytesWritten === 0) return void socket.resetAndDestroy()
  setTimeout(() => socket.resetAndDestroy(), RESET_DELAY_MS)
}
