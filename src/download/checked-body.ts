/** The body of a response as a stream: counted, checked and decoded, one chunk at a time. */
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import type { HttpResponse } from '../host/http.js'
import { errorCode } from '../host/system-error.js'
import { AttemptFailed } from './attempt-failed.js'
import { asAttemptFailed } from './output-request.js'

export type Bytes = AsyncIterable<Uint8Array>

/** `Content-Length`; undefined when it is absent or invalid. */
export function declaredLength(response: HttpResponse): number | undefined {
  const text = response.header('content-length')?.trim() ?? ''
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

/** Passes the bytes on. Throws `AttemptFailed` when there are fewer or more than declared, or none. */
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
        throw new AttemptFailed(`the host sent more than the ${declared} bytes it declared`, {
          isRetryable: true,
        })
      onReceived(chunk.byteLength)
      yield chunk
    }
  } catch (error) {
    throw asAttemptFailed(error)
  }
  if (declared !== undefined && received < declared)
    throw new AttemptFailed(`the response ended after ${received} of ${declared} bytes`, {
      isRetryable: true,
    })
  if (received === 0) throw new AttemptFailed('the response is empty', { isRetryable: true })
}

const DECODERS: Readonly<Record<string, () => NodeJS.ReadWriteStream & AsyncIterable<Uint8Array>>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

/**
 * Decodes a body that is encoded although `identity` was requested: object stores keep `Content-Encoding` with the object
 * and send it to everyone. `aws-chunked` is left over from the upload and means no encoding.
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
    throw new AttemptFailed(
      `the host encoded the response as ${encodings.join(', ')}, which was not requested`,
      {
        isRetryable: false,
      },
    )
  return through(body, createDecoder())
}

async function* through(
  body: Bytes,
  decoder: NodeJS.ReadWriteStream & AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  // An error of the source destroys the decoder with the same error, which the loop below throws.
  pipeline(Readable.from(body), decoder).catch(() => {})
  try {
    yield* decoder
  } catch (error) {
    const code = errorCode(error) ?? ''
    // Error codes of zlib and Brotli.
    if (/^(Z_|ERR__)/.test(code))
      throw new AttemptFailed(`the encoded response cannot be decoded: ${code}`, {
        isRetryable: true,
        cause: error,
      })
    throw error
  }
}

/** The same bytes; the first chunk has at least `bytes` bytes, unless the body is shorter. */
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
