/**
 * Decodes bodies that a server compressed although `Accept-Encoding: identity` was sent: object stores keep the encoding
 * with the object, and some proxies and gateways always compress. Used for the API, the model servers and the downloads.
 */
import type { Transform } from 'node:stream'
import * as zlib from 'node:zlib'
import { HttpFailure, type HttpResponse } from './http.js'
import { errorCode } from './system-error.js'

type Bytes = AsyncIterable<Uint8Array>

/** Code of the `HttpFailure` for an encoding that cannot be decoded. */
export const UNSUPPORTED_ENCODING = 'UNSUPPORTED_ENCODING'

/** Maximum number of encodings that are applied one after another. Each one multiplies the size of the body. */
const MAX_ENCODINGS = 4
/** `aws-chunked` is left over from an upload to an object store. The others are mistakes of servers. */
const NOT_ENCODED = new Set(['', 'identity', 'none', 'aws-chunked', 'utf-8'])

const OPTIONS = { chunkSize: 65_536 } as const

/** Returns a decoder for a body that begins with `firstByte`, or undefined if this Node.js cannot decode it. */
function createDecoder(encoding: string, firstByte: number): Transform | undefined {
  switch (encoding) {
    case 'gzip':
    case 'x-gzip':
      return zlib.createGunzip(OPTIONS)
    case 'deflate':
      // Some servers send the data without the zlib header. The header begins with 8 as its lower half.
      return (firstByte & 0x0f) === 8 ? zlib.createInflate(OPTIONS) : zlib.createInflateRaw(OPTIONS)
    case 'br':
      return zlib.createBrotliDecompress(OPTIONS)
    case 'zstd': {
      // Node.js 22.15 or later.
      const create: ((options: object) => Transform) | undefined = Reflect.get(zlib, 'createZstdDecompress')
      return create?.(OPTIONS)
    }
    default:
      return undefined
  }
}

const encodingsOf = (header: HttpResponse['header']): readonly string[] =>
  (header('content-encoding') ?? '')
    .toLowerCase()
    .split(',')
    .map((each) => each.trim())
    .filter((each) => !NOT_ENCODED.has(each))

/** Returns whether the body must be decoded. */
export const isEncoded = (header: HttpResponse['header']): boolean => encodingsOf(header).length > 0

/**
 * Yields the decoded body in chunks of at most 128 KiB, so that the reader can stop at its limit. Throws an `HttpFailure`
 * if the body cannot be decoded. All bytes that can be decoded are yielded before the error.
 */
export async function* decodedBody(header: HttpResponse['header'], encoded: Bytes): Bytes {
  const encodings = encodingsOf(header)
  if (encodings.length > MAX_ENCODINGS) throw unsupported(encodings)
  // The encodings are listed in the order in which they were applied.
  yield* encodings.reduceRight((body, encoding) => decodedOnce(body, encoding), encoded)
}

async function* decodedOnce(body: Bytes, encoding: string): AsyncGenerator<Uint8Array> {
  let decoder: Transform | undefined
  let wake = () => {}
  try {
    for await (const chunk of body) {
      if (chunk.byteLength === 0) continue
      if (decoder === undefined) {
        decoder = createDecoder(encoding, chunk[0] ?? 0)
        if (decoder === undefined) throw unsupported([encoding])
        for (const event of ['readable', 'end', 'error']) decoder.on(event, () => wake())
      }
      let isWritten = false
      decoder.write(chunk, () => {
        isWritten = true
        wake()
      })
      yield* output(decoder, () => isWritten)
    }
    // A response without a body, such as a 304, may name an encoding.
    if (decoder === undefined) return
    decoder.end()
    yield* output(decoder, () => decoder?.readableEnded ?? true)
  } finally {
    decoder?.destroy()
  }

  /** Yields what comes out of the decoder until `isOver`. */
  async function* output(from: Transform, isOver: () => boolean): AsyncGenerator<Uint8Array> {
    for (;;) {
      // Read before the error is thrown: the decoder still holds what it decoded before.
      for (let piece: Uint8Array | null = from.read(); piece !== null; piece = from.read()) yield piece
      if (from.errored !== null) throw undecodable(from.errored)
      if (isOver()) return
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
}

/** Other names are not repeated: a header can contain anything, also the API key. */
const PRINTABLE_NAME = /^(x-)?(gzip|deflate|br|zstd|compress|bzip2|xz|lzma|base64)$/

function unsupported(encodings: readonly string[]): HttpFailure {
  const names = encodings.every((each) => PRINTABLE_NAME.test(each)) ? `as ${encodings.join(', ')}` : ''
  const message = `the response is encoded ${names || 'in an unknown way'}, although no encoding was requested`
  return new HttpFailure(message, { sent: true, code: UNSUPPORTED_ENCODING, isInvalidHttp: true })
}

const undecodable = (cause: Error): HttpFailure =>
  new HttpFailure(`the encoded response cannot be decoded: ${errorCode(cause) ?? cause.message}`, {
    sent: true,
    code: errorCode(cause),
    isInvalidHttp: true,
    cause,
  })
