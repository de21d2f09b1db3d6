import type { IncomingMessage } from 'node:http'
import { Refusal } from '../rules/refusal.js'

/**
 * The whole body, whatever type it says it has. One that is too large is refused at once, and what follows is read
 * and dropped: a connection that is closed while the client still writes would take the answer with it.
 */
export function readBody(request: IncomingMessage, mostBytes: number): Promise<Uint8Array> {
  const tooLarge = () => new Refusal('payload_too_large', `The limit is ${mostBytes} bytes.`)
  if (Number(request.headers['content-length'] ?? 0) > mostBytes) return Promise.reject(tooLarge())
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = []
    let bytes = 0
    request.on('data', (chunk: Uint8Array) => {
      bytes += chunk.byteLength
      if (bytes <= mostBytes) return void chunks.push(chunk)
      chunks.length = 0
      reject(tooLarge())
    })
    const cutShort = () => reject(new Refusal('bad_request', 'The body ended before it was whole.'))
    request.once('end', () => resolve(Buffer.concat(chunks)))
    request.once('error', cutShort)
    request.once('close', cutShort)
  })
}
