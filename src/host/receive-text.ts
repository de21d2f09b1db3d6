/** Reads the bodies of responses as text, up to a limit, and as much as arrives. */
import { messageOf } from '../errors.js'
import { decodedBody, isEncoded } from './content-encoding.js'
import type { HttpResponse } from './http.js'

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
