/**
 * Reads the bodies of responses as text, up to a limit, and as much as arrives. Decodes bodies that a server compressed
 * although `Accept-Encoding: identity` was sent: object stores keep the encoding with the object, and some proxies and
 * gateways always compress.
 */
import type { Transform } from 'node:stream'
import { messageOf } from '../errors.js'
import { HttpFailure, type HttpResponse } from './http.js'
import { errorCode } from './system-error.js'

export class BodyTooLarge extends Error {
  override readonly name = 'BodyTooLarge'
}

export interface ReceivedText {
  /** The decoded body, read as UTF-8. */
  readonly text: string
  /** The bytes, if `text` does not have all of them: they are not UTF-8, or contain NUL, or cannot be decoded. */
  readonly binary?: Uint8Array | undefined
  /** Why no byte could be decoded. */
  readonly undecodable?: string | undefined
  /** Set if the body is not complete: `BodyTooLarge`, an `HttpFailure`, or the reason of the request's signal. */
  readonly failure?: unknown
}

/** Resolves with the received part of the body as text, at most `maxBytes` before and after decoding. */
export async function receiveText(response: HttpResponse, maxBytes: number): Promise<ReceivedText> {
  const raw = await receiveBytes(response.body, maxBytes)
  if (raw.failure instanceof BodyTooLarge) response.discard()
  const header = (name: string) => response.header(name)
  if (!isEncoded(header)) return asText(raw)
  const decoded = await receiveBytes(decodedBody(header, replayed(raw)), maxBytes)
  if (decoded.failure === undefined || decoded.bytes.byteLength > 0) return asText(decoded)
  // Nothing could be decoded. If it is text, the server named an encoding that it did not apply.
  const undecoded = asText(raw)
  const isWhole = decoded.failure !== raw.failure
  return undecoded.binary && isWhole ? { ...undecoded, undecodable: messageOf(decoded.failure) } : undecoded
}

async function* replayed({ bytes, failure }: ReceivedBytes): AsyncGenerator<Uint8Array> {
  yield bytes
  if (failure !== undefined) throw failure
}

function asText({ bytes, failure }: ReceivedBytes): ReceivedText {
  let binary: Buffer | undefined
  try {
    // The last character may be incomplete if the body is.
    const decoder = new TextDecoder('utf-8', { fatal: true })
    if (decoder.decode(bytes, { stream: failure !== undefined }).includes('\0')) binary = bytes
  } catch {
    binary = bytes
  }
  return { text: bytes.toString('utf8'), failure, binary }
}

interface ReceivedBytes {
  readonly bytes: Buffer
  readonly failure?: unknown
}

async function receiveBytes(body: HttpResponse['body'], maxBytes: number): Promise<ReceivedBytes> {
  const chunks: Uint8Array[] = []
  let [bytes, failure]: [number, unknown] = [0, undefined]
  try {
    for await (const chunk of body) {
      chunks.push(chunk)
      bytes += chunk.byteLength
      if (bytes > maxBytes) throw new BodyTooLarge(`the response is larger than ${maxBytes} bytes`)
    }
  } catch (error) {
    failure = error
  }
  return { bytes: Buffer.concat(chunks).subarray(0, maxBytes), failure }
}

/** Resolves with the whole body as text. Throws `BodyTooLarge` as soon as the body exceeds `maxBytes`. */
export async function readText(response: HttpResponse, maxBytes: number): Promise<string> {
  const { text, failure } = await receiveText(response, maxBytes)
  if (failure !== undefined) throw failure
  return text
}

type Bytes = AsyncIterable<Uint8Array>

/** Code of the `HttpFailure` for an encoding that cannot be decoded. */
export const UNSUPPORTED_ENCODING = 'UNSUPPORTED_ENCODING'

/** `aws-chunked` is left over from an upload to an object store. */
const NOT_ENCODED = new Set(['', 'identity', 'none', 'aws-chunked', 'utf-8'])

/** Names of functions of `node:zlib`. */
const DECODERS: Readonly<Record<string, string>> = {
  gzip: 'createGunzip',
  'x-gzip': 'createGunzip',
  deflate: 'createInflate',
  br: 'createBrotliDecompress',
  // Node.js 22.15 or later.
  zstd: 'createZstdDecompress',
}

async function decoderOf(encoding: string): Promise<Transform> {
  // Loaded here, because almost no answer is encoded, and it takes longer to load than the rest of this file.
  const zlib = await import('node:zlib')
  const name = Object.hasOwn(DECODERS, encoding) ? DECODERS[encoding] : undefined
  const create = name && Reflect.get(zlib, name)
  if (!create) throw unsupported()
  return create({ chunkSize: 65_536 })
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
 * Yields the decoded body in small chunks, so that the reader can stop at its limit. Throws an `HttpFailure` if the body
 * cannot be decoded. All bytes that can be decoded are yielded before the error.
 */
export async function* decodedBody(header: HttpResponse['header'], encoded: Bytes): Bytes {
  // The encodings are listed in the order in which they were applied.
  yield* encodingsOf(header).reduceRight(decodedOnce, encoded)
}

async function* decodedOnce(body: Bytes, encoding: string): AsyncGenerator<Uint8Array> {
  const decoder = await decoderOf(encoding)
  let wake = () => {}
  for (const event of ['readable', 'end', 'error']) decoder.on(event, () => wake())

  /** Yields what comes out of the decoder until `isOver`. */
  async function* output(isOver: () => boolean): AsyncGenerator<Uint8Array> {
    for (;;) {
      // Read before the error is thrown: the decoder still holds what it decoded before.
      for (let piece: Uint8Array | null = decoder.read(); piece !== null; piece = decoder.read()) yield piece
      if (decoder.errored !== null) throw undecodable(decoder.errored)
      if (isOver()) return
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }

  try {
    let isEmpty = true
    for await (const chunk of body) {
      if (chunk.byteLength > 0) isEmpty = false
      let isWritten = false
      decoder.write(chunk, () => {
        isWritten = true
        wake()
      })
      yield* output(() => isWritten)
    }
    // A response without a body, such as a 304, may name an encoding.
    if (isEmpty) return
    decoder.end()
    yield* output(() => decoder.readableEnded)
  } finally {
    decoder.destroy()
  }
}

/** Does not repeat the name of the encoding: a header can contain anything, also the API key. */
const unsupported = (): HttpFailure =>
  new HttpFailure('the response has an unsupported encoding, although none was requested', {
    sent: true,
    code: UNSUPPORTED_ENCODING,
    isInvalidHttp: true,
  })

const undecodable = (cause: Error): HttpFailure =>
  new HttpFailure(`the encoded response cannot be decoded: ${errorCode(cause) ?? cause.message}`, {
    sent: true,
    code: errorCode(cause),
    isInvalidHttp: true,
    cause,
  })
