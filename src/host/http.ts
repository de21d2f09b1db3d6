/**
 * The type of all HTTP functions. Key, rate limit, trace and retry wrap a function of this type, and tests pass the
 * real service without a port.
 */
import { usageError } from '../errors.js'

export interface HttpRequest {
  readonly method: 'GET' | 'POST'
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Uint8Array
  readonly signal?: AbortSignal | undefined
  /**
   * Do not use a connection that was idle for more than a second: if the server closes it at that moment, the outcome
   * of a POST is unknown.
   */
  readonly fresh?: boolean
}

/** A request to a server of models. */
export interface ServerRequest extends Omit<HttpRequest, 'method'> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** A body that is not held in memory; in place of `body`. */
  readonly stream?: RequestStream
  /**
   * Wait for the head of the response until `signal` is aborted: for a server that answers when its work is done. A
   * body that pauses still fails.
   */
  readonly isSlow?: boolean
}

export type ServerFetch = (request: ServerRequest) => Promise<HttpResponse>

export interface RequestStream {
  readonly bytes: number
  chunks(): AsyncIterable<Uint8Array>
}

/** Head of a response, and a stream of its body. */
export interface HttpResponse {
  readonly status: number
  /** Returns a header; `name` is not case-sensitive. Repeated headers are joined by `, `. */
  header(name: string): string | undefined
  /** Iterate once, or call `discard`. Throws `HttpFailure` if the connection breaks. */
  readonly body: AsyncIterable<Uint8Array>
  discard(): void
}

/** Sends one request and resolves with the head of the response. Does not follow redirects. Throws `HttpFailure`. */
export type Fetch = (request: HttpRequest) => Promise<HttpResponse>

/** The request got no response, or an incomplete or invalid one. */
export class HttpFailure extends Error {
  override readonly name = 'HttpFailure'
  /**
   * False only if no byte of the request was sent: the name was not found, the connection was refused or timed out, or
   * TLS failed.
   */
  readonly sent: boolean
  /** Error code of the system or of undici, such as ECONNREFUSED. */
  readonly code: string | undefined
  /** The received bytes are not HTTP or cannot be decoded: another kind of server may listen there. */
  readonly isInvalidHttp: boolean
  /** What the user can do, if it does not depend on the server: about certificates and proxies. */
  readonly advice: string | undefined

  constructor(
    message: string,
    options: {
      sent: boolean
      code?: string | undefined
      isInvalidHttp?: boolean
      advice?: string | undefined
      cause?: unknown
    },
  ) {
    super(message, { cause: options.cause })
    this.sent = options.sent
    this.code = options.code
    this.isInvalidHttp = options.isInvalidHttp ?? false
    this.advice = options.advice
  }
}

/** Returns whether a host name always refers to this machine. */
export function isLoopback(hostname: string): boolean {
  const host = hostname
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
  return (
    host === 'localhost' || host.endsWith('.localhost') || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
  )
}

/**
 * Returns the proxy for this protocol (`https:`), or undefined without one. Lowercase variables take precedence over
 * uppercase ones, as with curl. Throws `usage` with the name of the variable, but never its value, which may contain a
 * password.
 */
export function findProxy(env: NodeJS.ProcessEnv, protocol: string): URL | undefined {
  const names = protocol === 'https:' ? ['HTTPS_PROXY', 'HTTP_PROXY'] : ['HTTP_PROXY']
  const variable = names.flatMap((name) => [name.toLowerCase(), name]).find((name) => env[name])
  const value = variable === undefined ? '' : (env[variable] ?? '').trim()
  if (variable === undefined || value === '') return undefined
  try {
    // An address without a protocol is http, as with curl.
    const url = new URL(value.includes('://') ? value : `http://${value}`)
    // undici decodes user name and password, and throws too late.
    const isDecodable = decodeURIComponent(url.username + url.password).length >= 0
    if (isDecodable && /^https?:$/.test(url.protocol) && `${url.pathname}${url.search}${url.hash}` === '/')
      return url
  } catch {
    // The same error as for another URL that is not one of a proxy.
  }
  throw usageError(
    `${variable} is not a valid proxy URL.`,
    'Examples: http://proxy.example.com:3128, http://user:password@proxy.example.com:3128. In a user name and a ' +
      'password, percent-encode special characters: \\ is %5C, / is %2F, # is %23, % is %25.',
  )
}

/** Returns the host names that bypass the proxy, separated by commas. */
export const noProxy = (env: NodeJS.ProcessEnv): string => env.no_proxy || env.NO_PROXY || ''
