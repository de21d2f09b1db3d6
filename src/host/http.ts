/**
 * One function type for HTTP, so that what is added to it (key, limit, trace, retry) is wrapped around it, and
 * tests put the real service in its place without a port.
 */

/** One request, as it goes out. */
export interface HttpRequest {
  readonly method: 'GET' | 'POST'
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Uint8Array
  readonly signal?: AbortSignal | undefined
  /**
   * Use no connection that was idle for longer than a second: a server that closes an idle connection in the same
   * moment makes the outcome of a POST unknown.
   */
  readonly fresh?: boolean
}

/** The head of an answer, and its body as it comes. */
export interface HttpResponse {
  readonly status: number
  /** Names in any case; several lines of one header are joined by `, `. */
  header(name: string): string | undefined
  /** The bytes as they come; iterate once, or call `discard`. Throws `HttpFailure` when the connection dies. */
  readonly body: AsyncIterable<Uint8Array>
  discard(): void
}

/** Sends one request and resolves with the head of the answer. Follows no redirect. Throws `HttpFailure`. */
export type Fetch = (request: HttpRequest) => Promise<HttpResponse>

/** A request that got no answer, or whose answer broke off. */
export class HttpFailure extends Error {
  override readonly name = 'HttpFailure'
  /**
   * False only when it is certain that no byte of the request left: the name was not found, the connection was
   * refused or timed out, or TLS was not agreed on.
   */
  readonly sent: boolean
  /** The system's or library's own code, such as ECONNREFUSED. */
  readonly code: string | undefined

  constructor(message: string, options: { sent: boolean; code?: string | undefined; cause?: unknown }) {
    super(message, { cause: options.cause })
    this.sent = options.sent
    this.code = options.code
  }
}

export class BodyTooLarge extends Error {
  override readonly name = 'BodyTooLarge'
}

/** The whole body as text. Throws `BodyTooLarge` as soon as it exceeds `mostBytes`. */
export async function readText(response: HttpResponse, mostBytes: number): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body) {
    bytes += chunk.byteLength
    if (bytes > mostBytes) {
      response.discard()
      throw new BodyTooLarge(`the answer is larger than ${mostBytes} bytes`)
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** A host name that can only mean this machine. */
export function isLoopback(hostname: string): boolean {
  const host = hostname
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
  return (
    host === 'localhost' || host.endsWith('.localhost') || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
  )
}
