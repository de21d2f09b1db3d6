/** The bytes of an answer on their way to the disk: counted, checked, decoded. Nothing is held but one chunk. */
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { errorCode } from '../host/directories.js'
import type { HttpResponse } from '../host/http.js'
import { Miss } from './attempt-failed.js'
import { missOfFailure } from './output-request.js'

export type Bytes = AsyncIterable<Uint8Array>

/** `Content-Length`; undefined when it is absent or makes no sense. */
export function declaredLength(response: HttpResponse): number | undefined {
  const text = response.header('content-length')?.trim() ?? ''
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

/** Passes the bytes on, and throws a `Miss` when they are fewer or more than declared, or none at all. */
export async function* checked(
  response: HttpResponse,
  onReceived: (bytes: number) => void,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  const declared = declaredLength(response)
  let received = 0
  try {
    for await (const chunk of response.body) {
      signal?.throwIfAborted()
      received += chunk.byteLength
      if (declared !== undefined && received > declared)
        throw new Miss(`the host sent more than the ${declared} bytes it declared`, { again: true })
      onReceived(chunk.byteLength)
      yield chunk
    }
  } catch (error) {
    throw missOfFailure(error)
  }
  if (declared !== undefined && received < declared)
    throw new Miss(`the answer ended after ${received} of ${declared} bytes`, { again: true })
  if (received === 0) throw new Miss('the answer is empty', { again: true })
}

const DECODERS: Readonly<Record<string, () => NodeJS.ReadWriteStream & AsyncIterable<Uint8Array>>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

/**
 * The file itself, where a host encodes though asked not to: object stores keep `Content-Encoding` with the object
 * and send it to everyone. `aws-chunked` is such a left-over and encodes nothing.
 */
export function decoded(body: Bytes, contentEncoding: string | undefined): Bytes {
  const encodings = (contentEncoding ?? '')
    .toLowerCase()
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '' && each !== 'identity' && each !== 'aws-chunked')
  const [encoding, ...more] = encodings
  if (encoding === undefined) return body
  const createDecoder = Object.hasOwn(DECODERS, encoding) ? DECODERS[encoding] : undefined
  if (createDecoder === undefined || more.length > 0)
    throw new Miss(`the host sends it encoded as ${encodings.join(', ')}, which was not asked for`, {
      again: false,
    })
  return through(body, createDecoder())
}

async function* through(
  body: Bytes,
  decoder: NodeJS.ReadWriteStream & AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  // A failure of the source ends the decoder with the same error, which the loop below then throws.
  pipeline(Readable.from(body), decoder).catch(() => {})
  try {
    yield* decoder
  } catch (error) {
    const code = errorCode(error) ?? ''
    // Those of zlib, and those of Brotli.
    if (/^(Z_|ERR__)/.test(code))
      throw new Miss(`the encoded answer cannot be read: ${code}`, { again: true, cause: error })
    throw error
  }
}

/** The same bytes, of which the first chunk is at least `bytes` long, or everything there is. */
export async function* withHead(body: Bytes, bytes: number): AsyncGenerator<Uint8Array> {
  const head: Uint8Array[] = []
  let held = 0
  for await (const chunk of body) {
    if (held >= bytes) {
      yield chunk
      continue
    }
    head.push(chunk)
    held += chunk.byteLength
    if (held >= bytes) yield Buffer.concat(head.splice(0))
  }
  if (head.length > 0) yield Buffer.concat(head)
}
