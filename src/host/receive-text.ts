/** Reads the bodies of responses as text, up to a limit, and as much as arrives. */
import { messageOf } from '../errors.js'
import { decodedBody, isEncoded } from './content-encoding.js'
import { HttpFailure, type HttpResponse } from './http.js'

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
  const decoded = await decode(header, raw, maxBytes)
  if (decoded.failure === undefined || decoded.bytes.byteLength > 0) return asText(decoded)
  // Nothing could be decoded. If it is text, the server named an encoding that it did not apply.
  const undecoded = asText(raw)
  const isTorn = decoded.failure === raw.failure
  return undecoded.binary === undefined || isTorn
    ? undecoded
    : { ...undecoded, undecodable: messageOf(decoded.failure) }
}

/** Maximum size of a body that is decoded byte by byte, which is slow. Responses of the API are smaller. */
const MAX_SINGLE_BYTES = 16_384

/** Decodes a received body, up to its first error. */
async function decode(
  header: HttpResponse['header'],
  raw: ReceivedBytes,
  maxBytes: number,
): Promise<ReceivedBytes> {
  const decodeIn = (pieceBytes: number) =>
    receiveBytes(decodedBody(header, replayed(raw, pieceBytes)), maxBytes)
  const { byteLength } = raw.bytes
  const decoded = await decodeIn(byteLength)
  const isDamaged = decoded.failure instanceof HttpFailure && decoded.failure !== raw.failure
  // zlib drops what it decoded of a piece with an error, such as a wrong checksum at the end, and with it a run id.
  return isDamaged && byteLength <= MAX_SINGLE_BYTES ? decodeIn(1) : decoded
}

async function* replayed({ bytes, failure }: ReceivedBytes, pieceBytes: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes)
  if (failure !== undefined) throw failure
}

function asText({ bytes, failure }: ReceivedBytes): ReceivedText {
  const text = bytes.toString('utf8')
  return { text, failure, binary: isText(bytes, failure !== undefined) ? undefined : bytes }
}

/** `isTorn`: the last character may be incomplete. */
function isText(bytes: Uint8Array, isTorn: boolean): boolean {
  try {
    const decoder = new TextDecoder('utf-8', { fatal: true })
    return !decoder.decode(bytes, { stream: isTorn }).includes('\0')
  } catch {
    return false
  }
}

interface ReceivedBytes {
  readonly bytes: Buffer
  readonly failure?: unknown
}

async function receiveBytes(body: HttpResponse['body'], maxBytes: number): Promise<ReceivedBytes> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  const received = () => Buffer.concat(chunks).subarray(0, maxBytes)
  try {
    for await (const chunk of body) {
      chunks.push(chunk)
      bytes += chunk.byteLength
      if (bytes > maxBytes) throw new BodyTooLarge(`the response is larger than ${maxBytes} bytes`)
    }
    return { bytes: received() }
  } catch (failure) {
    return { bytes: received(), failure }
  }
}

/** Resolves with the whole body as text. Throws `BodyTooLarge` as soon as the body exceeds `maxBytes`. */
export async function readText(response: HttpResponse, maxBytes: number): Promise<string> {
  const { text, failure } = await receiveText(response, maxBytes)
  if (failure !== undefined) throw failure
  return text
}
