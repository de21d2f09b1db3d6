/**
 * One function type for HTTP: key, limit, trace and retry are wrappers of it, and tests pass the real service without a
 * port.
 */

export interface HttpRequest {
  readonly method: 'GET' | 'POST'
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Uint8Array
  readonly signal?: AbortSignal | undefined
  /**
   * Use no connection that was idle for more than a second: if the server closes it at that moment, the outcome of a
   * POST is unknown.
   */
  readonly fresh?: boolean
}

/** The head of a response, and its body as it arrives. */
export interface HttpResponse {
  readonly status: number
  /** The name in any case. Repeated headers are joined by `, `. */
  header(name: string): string | undefined
  /** Iterate once, or call `discard`. Throws `HttpFailure` when the connection breaks. */
  readonly body: AsyncIterable<Uint8Array>
  discard(): void
}

/** Sends one request and resolves with the head of the response. Does not follow redirects. Throws `HttpFailure`. */
export type Fetch = (request: HttpRequest) => Promise<HttpResponse>

/** A request without a response, or with an incomplete or invalid one. */
export class HttpFailure extends Error {
  override readonly name = 'HttpFailure'
  /**
   * False only if certainly no byte of the request was sent: the name was not found, the connection was refused or
   * timed out, or TLS failed.
   */
  readonly sent: boolean
  /** Of the system or of undici, such as ECONNREFUSED. */
  readonly code: string | undefined
  /** The bytes that came are not HTTP: another kind of server listens there. */
  readonly isInvalidHttp: boolean

  constructor(
    message: string,
    options: { sent: boolean; code?: string | undefined; isInvalidHttp?: boolean; cause?: unknown },
  ) {
    super(message, { cause: options.cause })
    this.sent = options.sent
    this.code = options.code
    this.isInvalidHttp = options.isInvalidHttp ?? false
  }
}

export class BodyTooLarge extends Error {
  override readonly name = 'BodyTooLarge'
}

export interface ReceivedText {
  readonly text: string
  /** Why this is not the whole body: `BodyTooLarge`, an `HttpFailure`, or the reason of the request's signal. */
  readonly failure?: unknown
}

/** The body as text, as far as it arrived. */
export async function receiveText(response: HttpResponse, maxBytes: number): Promise<ReceivedText> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  const text = () => Buffer.concat(chunks).subarray(0, maxBytes).toString('utf8')
  try {
    for await (const chunk of response.body) {
      chunks.push(chunk)
      bytes += chunk.byteLength
      if (bytes > maxBytes) {
        response.discard()
        return { text: text(), failure: new BodyTooLarge(`the response is larger than ${maxBytes} bytes`) }
      }
    }
    return { text: text() }
  } catch (failure) {
    return { text: text(), failure }
  }
}

/** The whole body as text. Throws `BodyTooLarge` as soon as it exceeds `maxBytes`. */
export async function readText(response: HttpResponse, maxBytes: number): Promise<string> {
  const { text, failure } = await receiveText(response, maxBytes)
  if (failure !== undefined) throw failure
  return text
}

/** Whether a host name always means this machine. */
export function isLoopback(hostname: string): boolean {
  const host = hostname
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
  return (
    host === 'localhost' || host.endsWith('.localhost') || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
  )
}
