import type { IncomingMessage } from 'node:http'
import type { Clock } from '../../host/clock.js'
import { Refusal } from '../rules/refusal.js'
import type { BodyBudget } from './body-budget.js'
import type { HttpLimits } from './connection-limits.js'

export interface BodyLimits {
  readonly maxBytes: number
  /** At least `bodyBytes` must arrive in every `bodyMs`, unless the body ends. */
  readonly pace: Pick<HttpLimits, 'bodyMs' | 'bodyBytes'>
  readonly budget: BodyBudget
  readonly clock: Pick<Clock, 'alarm'>
}

/**
 * Reads the whole body, whatever its content type, and works with it; both count in the budget, under `owner`. It stays in
 * pieces, since joining 64 MiB holds up the event loop for 50 ms. What still arrives after a refusal is dropped.
 */
export async function withBody<Result>(
  request: IncomingMessage,
  limits: BodyLimits,
  owner: number,
  work: (body: readonly Uint8Array[]) => Promise<Result>,
): Promise<Result> {
  let held = 0
  const take = (bytes: number) => {
    if (!limits.budget.take(owner, held, bytes)) throw new Refusal('overloaded')
    held += bytes
  }
  try {
    return await work(await readBody(request, limits, take))
  } finally {
    limits.budget.release(owner, held)
  }
}

function readBody(
  request: IncomingMessage,
  { maxBytes, pace, clock }: BodyLimits,
  take: (bytes: number) => void,
): Promise<readonly Uint8Array[]> {
  const tooLarge = () => new Refusal('payload_too_large', `The limit is ${maxBytes} bytes.`)
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) return Promise.reject(tooLarge())
  return new Promise((resolve, reject) => {
    let chunks: Uint8Array[] = []
    let bytes = 0
    let seenBytes = 0
    let disarm = () => {}
    const watch = () => {
      disarm = clock.alarm(pace.bodyMs, () => {
        if (bytes - seenBytes < pace.bodyBytes) return refuse(new Refusal('request_timeout'))
        seenBytes = bytes
        watch()
      })
    }
    const receive = (chunk: Uint8Array) => {
      bytes += chunk.byteLength
      if (bytes > maxBytes) return refuse(tooLarge())
      try {
        take(chunk.byteLength)
        chunks.push(chunk)
      } catch (error) {
        refuse(error)
      }
    }
    const cutShort = () => refuse(new Refusal('bad_request', 'The body is incomplete.'))
    const stop = () => {
      disarm()
      request.off('data', receive)
    }
    function refuse(error: unknown): void {
      stop()
      chunks = []
      reject(error)
    }
    watch()
    request.on('data', receive)
    request.once('end', () => {
      stop()
      resolve(chunks)
    })
    request.once('error', cutShort)
    request.once('close', cutShort)
  })
}
