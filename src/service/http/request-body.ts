import type { IncomingMessage } from 'node:http'
import type { Clock } from '../../host/clock.js'
import { Refusal } from '../rules/refusal.js'
import type { HttpLimits } from './connection-limits.js'

export interface BodyLimits {
  readonly maxBytes: number
  /** At least `bodyBytes` must arrive in every `bodyMs`, unless the body ends. */
  readonly pace: Pick<HttpLimits, 'bodyMs' | 'bodyBytes'>
  readonly clock: Pick<Clock, 'alarm'>
}

/**
 * Reads the whole body, whatever its content type. A body that is too large is refused at once, and the rest is read
 * and dropped: if the connection were closed while the client still writes, it would not receive the response.
 */
export function readBody(
  request: IncomingMessage,
  { maxBytes, pace, clock }: BodyLimits,
): Promise<Uint8Array> {
  const tooLarge = () => new Refusal('payload_too_large', `The limit is ${maxBytes} bytes.`)
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) return Promise.reject(tooLarge())
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = []
    let bytes = 0
    let seenBytes = 0
    let disarm = () => {}
    const watch = () => {
      disarm = clock.alarm(pace.bodyMs, () => {
        if (bytes - seenBytes < pace.bodyBytes) return reject(new Refusal('request_timeout'))
        seenBytes = bytes
        watch()
      })
    }
    watch()
    request.on('data', (chunk: Uint8Array) => {
      bytes += chunk.byteLength
      if (bytes <= maxBytes) return void chunks.push(chunk)
      chunks.length = 0
      reject(tooLarge())
    })
    const cutShort = () => reject(new Refusal('bad_request', 'The body is incomplete.'))
    request.once('end', () => {
      disarm()
      resolve(Buffer.concat(chunks))
    })
    request.once('error', cutShort)
    request.once('close', () => {
      disarm()
      cutShort()
    })
  })
}
