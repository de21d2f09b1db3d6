/** Reads request bodies, with limits for the size and speed of each body, and for the memory of all bodies together. */
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { Clock } from '../../host/clock.js'
import { Refusal } from '../rules/refusal.js'
import type { HttpLimits } from './connections.js'

export interface BodyLimits {
  readonly maxBytes: number
  /** At least `bodyBytes` must arrive in every `bodyMs`, until the body ends. */
  readonly pace: HttpLimits
  readonly memory: BodyMemory
  readonly clock: Clock
}

/**
 * Reads the whole body and passes it to `work`. Its memory counts for `owner` until `work` ends. The body stays in
 * chunks, since joining 64 MiB blocks the event loop for 50 ms. Bytes that arrive after a refusal are discarded.
 */
export async function withBody<Result>(
  request: IncomingMessage,
  limits: BodyLimits,
  owner: number,
  work: (body: readonly Uint8Array[]) => Promise<Result>,
): Promise<Result> {
  let taken = 0
  const take = (bytes: number) => {
    if (!limits.memory.take(owner, taken, bytes)) throw new Refusal('overloaded')
    taken += bytes
  }
  try {
    return await work(await readBody(request, limits, take))
  } finally {
    limits.memory.release(owner, taken)
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
    let checkedBytes = 0
    let disarm = () => {}
    const watch = () => {
      disarm = clock.alarm(pace.bodyMs, () => {
        if (bytes - checkedBytes < pace.bodyBytes) return refuse(new Refusal('request_timeout'))
        checkedBytes = bytes
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
    const refuseIncomplete = () => refuse(new Refusal('bad_request', 'The body is incomplete.'))
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
    request.once('error', refuseIncomplete)
    request.once('close', refuseIncomplete)
  })
}

/**
 * Limits the memory of all request bodies together. Bytes count from their arrival until their create is answered, so a
 * client that declares a large body and sends nothing uses no memory. Small bodies do not count: the number of
 * connections limits them. An owner cannot use more than it leaves free for others: the first gets half, the next half
 * of the rest (like the dynamic thresholds of network switches with a shared buffer).
 */
export interface BodyMemory {
  /** Takes memory for further bytes of a body that already has `bodyBytes`. Returns false if no memory is free. */
  take(owner: number, bodyBytes: number, furtherBytes: number): boolean
  /** Releases all memory of a body. */
  release(owner: number, bodyBytes: number): void
}

export const FREE_BYTES = 65_536

const counted = (bytes: number): number => Math.max(0, bytes - FREE_BYTES)

export function createBodyMemory(totalBytes: number): BodyMemory {
  const byOwner = new Map<number, number>()
  let total = 0

  function add(owner: number, bytes: number): void {
    total += bytes
    const used = (byOwner.get(owner) ?? 0) + bytes
    if (used === 0) byOwner.delete(owner)
    else byOwner.set(owner, used)
  }

  return {
    take(owner, bodyBytes, furtherBytes) {
      const bytes = counted(bodyBytes + furtherBytes) - counted(bodyBytes)
      const used = byOwner.get(owner) ?? 0
      if (bytes > 0 && used + bytes > totalBytes - total - bytes) return false
      add(owner, bytes)
      return true
    },
    release: (owner, bodyBytes) => add(owner, -counted(bodyBytes)),
  }
}

/**
 * Does not read the bodies of this scope, of any content type. The handlers call `withBody` once the caller is known.
 */
export function leaveBodiesUnread(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _body, done) => done(null))
  app.addHook('onRequest', async ({ raw }) => {
    if ('content-type' in raw.headers) raw.headers['content-type'] = 'application/octet-stream'
  })
}
