/** Reads request bodies, with a limit for each and one for the memory of all bodies in flight. */
import { finished } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Refusal } from '../rules/refusal.js'

/** Bodies up to this size are never refused for memory: the number of connections limits them. */
export const SMALL_BYTES = 65_536

/** Counts the bytes of all bodies, from their arrival until their requests are answered. */
export class BodyMemory {
  readonly #maxBytes: number
  #usedBytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Takes further bytes of a body that then has `bodyBytes`. Returns false if no memory is left. */
  take(bytes: number, bodyBytes: number): boolean {
    if (bodyBytes > SMALL_BYTES && this.#usedBytes + bytes > this.#maxBytes) return false
    this.#usedBytes += bytes
    return true
  }

  release(bytes: number): void {
    this.#usedBytes -= bytes
  }
}

/**
 * Reads the bodies of this scope, of any content type, as bytes, after the hook `onRequest` has admitted the caller. The rest of
 * a refused body is discarded.
 */
export function readBodies(app: FastifyInstance, memory: BodyMemory): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  app.addHook('preParsing', (request, reply, payload, done) => {
    if (request.method === 'GET' || request.method === 'HEAD') return done(null, payload)
    let takenBytes = 0
    payload.on('data', function count(chunk: Buffer) {
      if (memory.take(chunk.length, takenBytes + chunk.length)) {
        takenBytes += chunk.length
        return
      }
      payload.off('data', count).resume()
      payload.emit('error', new Refusal('overloaded'))
    })
    finished(reply.raw, () => memory.release(takenBytes))
    done(null, payload)
  })
}

/** The body that `readBodies` has read. */
export const bodyOf = ({ body }: FastifyRequest): Buffer => (body as Buffer | undefined) ?? Buffer.alloc(0)
